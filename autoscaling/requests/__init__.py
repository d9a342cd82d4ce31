"""How much should the pods of each service request, and at which hours?

use.py             what one pod of each service is expected to use, and today's requests
recommending.py           what a request must cover, half hour by half hour, so that full nodes stay cool
recommending.py    few classes of hours, where a request by the clock pays
recommending.py    one recommendation for each service, or why there is none
recommendation_report.py         what changes against today's requests; recommendation_report.py: how often usage passed
the recommendation manifests.py       patches of pod templates, and VerticalPodAutoscaler objects that only show it
pod_resources.py   the containers of a pod as JSON, and what a resize may change; resizing.py: which pods, up or down
resize_hand.py     carries resizes out; resize_requests.py: its requests to the API server
"""
