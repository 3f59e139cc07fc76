import os

from flask import Flask

app = Flask(__name__)


@app.get("/")
def hello():
    return os.environ.get("GREETING", "Hello from Python") + "\n", {"content-type": "text/plain; charset=utf-8"}
