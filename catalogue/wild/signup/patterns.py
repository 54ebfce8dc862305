"""What we accept. The address pattern is from a well-known answer on the web."""
import os
import re

NAME = re.compile(r"^[\w' -]{2,60}$")

if os.environ.get("VARIANT", "flawed") == "flawed":
    EMAIL = re.compile(r"^([a-zA-Z0-9]+[._-]?)+@([a-zA-Z0-9-]+\.)+[a-z]{2,}$")
else:
    EMAIL = re.compile(r"^[a-zA-Z0-9](?:[a-zA-Z0-9._-]{0,62}[a-zA-Z0-9])?@(?:[a-zA-Z0-9-]{1,63}\.){1,8}[a-z]{2,20}$")
