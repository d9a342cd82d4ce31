"""How many nodes will be needed, and when?"""
