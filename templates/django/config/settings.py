import hashlib
import os

# Set SECRET_KEY as a variable of the project. Until then it is made from the database's own secret.
SECRET_KEY = os.environ.get("SECRET_KEY") or hashlib.sha256(os.environ.get("PGPASSWORD", "").encode()).hexdigest()
DEBUG = os.environ.get("DEBUG") == "1"
# Requests come through the platform's edge, which knows the project's names.
ALLOWED_HOSTS = ["*"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

INSTALLED_APPS = ["notes"]
MIDDLEWARE = ["django.middleware.security.SecurityMiddleware", "django.middleware.csrf.CsrfViewMiddleware"]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ.get("PGHOST"),
        "PORT": os.environ.get("PGPORT"),
        "NAME": os.environ.get("PGDATABASE"),
        "USER": os.environ.get("PGUSER"),
        "PASSWORD": os.environ.get("PGPASSWORD"),
        "CONN_MAX_AGE": 60,
    }
}
