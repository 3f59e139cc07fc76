import os
import platform

from flask import Flask

app = Flask(__name__)


@app.get("/")
def hello():
    name = os.environ.get("NAME", "from Python")
    return f"Ahoy {name}! This is Python {platform.python_version()}.\n"


@app.get("/healthz")
def healthz():
    return "ok\n"
