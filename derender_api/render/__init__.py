"""Rendering: from OpenAI requests to the token IDs and sampling parameters an engine is given (protocol 10).

Knows nothing of HTTP; `derender_api.services.render` tells the story.
"""
