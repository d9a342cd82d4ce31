"""What-if: place the user's own pods anew by several rules, play the real days back, and compare.

window      which stretch of time
recording   what really happened in it: pods that come and go, what they use, what nodes use besides them
curves      what a rule believes will happen
rules       native, live, last_week, forecast, oracle, and the rungs of the degradation ladder
preparation window, recording, forecasts and rules, before anything is played
playback    recording + rule -> which node each pod lands on
metrics     recording + nodes -> hot share, spread of peaks, coverage of the bound
report      the figures of all rules, as JSON
html        the same with plots, for people

doubled_replicas  history -> another one, in which services were scaled shortly before: last week cannot know it
"""
