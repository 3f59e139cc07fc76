/**
 * A Django application with procrastinate's queue on PostgreSQL: `web` acknowledges a job when it is stored, `worker` runs it and inserts a row
 * for each run, `scheduler` queues a tick every second. A worker or scheduler that starts while another one still runs records the overlap.
 */
export const djangoApp: Readonly<Record<string, string>> = {
  "requirements.txt":
    "Django==5.2.19\nprocrastinate==3.10.0\npsycopg[binary]==3.3.9\nAPScheduler==3.11.3\ndj-database-url==3.1.2\ngunicorn==23.0.0\n",
  Procfile: `release: python manage.py migrate --noinput
web: gunicorn letters.wsgi --bind 0.0.0.0:$PORT
worker: python manage.py procrastinate worker --concurrency 5
scheduler: python manage.py schedule
`,
  "manage.py": `import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "letters.settings")
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
`,
  "letters/__init__.py": "",
  "letters/settings.py": `import os
from urllib.parse import urlsplit
import dj_database_url
SECRET_KEY = os.environ["SECRET_KEY"]
ALLOWED_HOSTS = [urlsplit(os.environ["BERTH_URL"]).hostname]
INSTALLED_APPS = ["procrastinate.contrib.django", "jobs"]
ROOT_URLCONF = "letters.urls"
DATABASES = {"default": dj_database_url.config(conn_max_age=600)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
LOGGING = {"version": 1, "handlers": {"out": {"class": "logging.StreamHandler"}}, "root": {"handlers": ["out"], "level": "INFO"}}
`,
  "letters/wsgi.py": `import os
from django.core.wsgi import get_wsgi_application
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "letters.settings")
application = get_wsgi_application()
`,
  "letters/urls.py": `from django.urls import path
from jobs import views
urlpatterns = [path("", views.index), path("jobs", views.send), path("done", views.done)]
`,
  "jobs/__init__.py": "",
  "jobs/apps.py": `import os, sys
from django.apps import AppConfig
class JobsConfig(AppConfig):
    name = "jobs"
    def ready(self):
        key = 7 if "worker" in sys.argv else 8 if "schedule" in sys.argv else None
        if key is not None:
            import psycopg
            self.alone = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
            if not self.alone.execute("select pg_try_advisory_lock(%s)", [key]).fetchone()[0]:
                self.alone.execute("insert into jobs_overlap (process) values (%s)", [os.environ["BERTH_DEPLOYMENT"]])
`,
  "jobs/models.py": `from django.db import models
class Done(models.Model):
    job = models.TextField()
    worker = models.TextField()
class Tick(models.Model):
    scheduler = models.TextField()
class Overlap(models.Model):
    process = models.TextField()
`,
  "jobs/migrations/__init__.py": "",
  "jobs/migrations/0001_initial.py": `from django.db import migrations, models
def table(name, *fields):
    columns = [(field, models.TextField()) for field in fields]
    return migrations.CreateModel(name, [("id", models.BigAutoField(primary_key=True, serialize=False)), *columns])
class Migration(migrations.Migration):
    initial = True
    operations = [table("Done", "job", "worker"), table("Tick", "scheduler"), table("Overlap", "process")]
`,
  "jobs/tasks.py": `import os, time
from procrastinate.contrib.django import app
from .models import Done, Tick
@app.task(name="write", pass_context=True)
def write(context):
    time.sleep(0.2)
    Done.objects.create(job=str(context.job.id), worker=os.environ["BERTH_DEPLOYMENT"])
@app.task(name="tick")
def tick(scheduler):
    Tick.objects.create(scheduler=scheduler)
`,
  "jobs/views.py": `from django.db.models import Count
from django.http import JsonResponse
from django.views.decorators.csrf import csrf_exempt
from .models import Done, Overlap, Tick
from .tasks import write
def index(request):
    return JsonResponse({})
@csrf_exempt
def send(request):
    return JsonResponse({"job": str(write.defer())})
def done(request):
    return JsonResponse({
        "done": list(Done.objects.values("job").annotate(times=Count("id"))),
        "workers": Done.objects.values("worker").distinct().count(),
        "schedulers": Tick.objects.values("scheduler").distinct().count(),
        "overlaps": Overlap.objects.count(),
    })
`,
  "jobs/management/__init__.py": "",
  "jobs/management/commands/__init__.py": "",
  "jobs/management/commands/schedule.py": `import os, signal
from apscheduler.schedulers.blocking import BlockingScheduler
from django.core.management.base import BaseCommand
from jobs.tasks import tick
class Command(BaseCommand):
    def handle(self, **options):
        scheduler = BlockingScheduler(timezone="UTC")
        scheduler.add_job(lambda: tick.defer(scheduler=os.environ["BERTH_DEPLOYMENT"]), "interval", seconds=1)
        signal.signal(signal.SIGTERM, lambda *_: scheduler.shutdown(wait=False))
        scheduler.start()
`,
};
