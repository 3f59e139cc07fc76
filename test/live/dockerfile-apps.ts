/** A source with a Dockerfile, and the parent image in `tools/images` that replaces the official one. */
export interface DockerfileApp {
  readonly parents: readonly string[];
  /** Each response contains `Hello from <slug>`. `FROM` names a parent image as `parent/<name>`. */
  readonly files: Readonly<Record<string, string>>;
}

/**
 * Applications of seven kinds, with the Dockerfiles that their guides recommend: stages, package caches, other users than root, EXPOSE and
 * health checks.
 */
export const dockerfileApps: Readonly<Record<string, DockerfileApp>> = {
  django: {
    parents: ["python"],
    files: {
      Dockerfile: `# syntax=docker/dockerfile:1
FROM parent/python
ENV PYTHONDONTWRITEBYTECODE=1
ENV PYTHONUNBUFFERED=1
WORKDIR /code
COPY requirements.txt /code/
RUN --mount=type=cache,target=/root/.cache/pip pip install -r requirements.txt
COPY . /code/
RUN python manage.py collectstatic --noinput
EXPOSE 8000
CMD ["gunicorn", "--bind", "0.0.0.0:8000", "site_of_test.wsgi"]
`,
      ".dockerignore": "**/__pycache__\n.git\n",
      "requirements.txt": "Django==5.2.19\ngunicorn==23.0.0\nwhitenoise==6.11.0\n",
      "manage.py": `import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_of_test.settings")
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
`,
      "site_of_test/__init__.py": "",
      "site_of_test/settings.py": `SECRET_KEY = "of a test"
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = ["django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.staticfiles"]
MIDDLEWARE = ["whitenoise.middleware.WhiteNoiseMiddleware"]
ROOT_URLCONF = "site_of_test.urls"
STATIC_URL = "static/"
STATIC_ROOT = "collected"
`,
      "site_of_test/wsgi.py": `import os
from django.core.wsgi import get_wsgi_application
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_of_test.settings")
application = get_wsgi_application()
`,
      "site_of_test/urls.py": `from django.http import HttpResponse
from django.urls import path
urlpatterns = [path("", lambda request: HttpResponse("Hello from django"))]
`,
    },
  },
  flask: {
    parents: ["python"],
    files: {
      Dockerfile: `FROM parent/python AS builder
RUN python -m venv /opt/venv
ENV PATH="/opt/venv/bin:$PATH"
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt

FROM parent/python
COPY --from=builder --chown=1000:1000 /opt/venv /opt/venv
WORKDIR /srv
COPY --chown=1000:1000 . .
USER 1000:1000
ENV PATH="/opt/venv/bin:$PATH" PORT=5001
EXPOSE $PORT
HEALTHCHECK --interval=5s --timeout=10s CMD python -c "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ['PORT'])"
ENTRYPOINT ["sh", "-c", "exec gunicorn --bind :$PORT --workers 1 --threads 8 main:app"]
`,
      "requirements.txt": "Flask==3.1.2\ngunicorn==23.0.0\n",
      "main.py": `from flask import Flask
app = Flask(__name__)
@app.route("/")
def hello():
    return "Hello from flask"
`,
    },
  },
  perl: {
    parents: ["bookworm"],
    files: {
      Dockerfile: `FROM parent/bookworm
RUN apt-get update \\
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends lighttpd perl libcgi-pm-perl \\
 && rm -rf /var/lib/apt/lists/*
COPY lighttpd.conf /etc/lighttpd/lighttpd.conf
COPY cgi-bin/ /usr/lib/cgi-bin/
RUN chmod 755 /usr/lib/cgi-bin/*.pl
EXPOSE 8080
CMD ["lighttpd", "-D", "-f", "/etc/lighttpd/lighttpd.conf"]
`,
      "lighttpd.conf": `server.modules = ("mod_alias", "mod_cgi")
server.document-root = "/usr/lib/cgi-bin"
server.port = 8080
cgi.assign = (".pl" => "/usr/bin/perl")
index-file.names = ("hello.pl")
`,
      "cgi-bin/hello.pl": `#!/usr/bin/perl
use strict;
use warnings;
use CGI;
my $cgi = CGI->new;
print $cgi->header("text/plain"), "Hello from perl";
`,
    },
  },
  golang: {
    parents: ["golang"],
    files: {
      Dockerfile: `FROM parent/golang AS build
WORKDIR /src
COPY go.mod ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \\
    CGO_ENABLED=0 go build -ldflags="-s -w" -o /bin/server ./cmd/server

FROM scratch
COPY --from=build /bin/server /server
USER 65532:65532
EXPOSE 8081
ENTRYPOINT ["/server"]
`,
      "go.mod": "module example.com/hello\n\ngo 1.19\n",
      "cmd/server/main.go": `package main

import (
	"fmt"
	"log"
	"net/http"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "Hello from golang") })
	log.Fatal(http.ListenAndServe(":8081", nil))
}
`,
    },
  },
  next: {
    parents: ["node"],
    files: {
      Dockerfile: `FROM parent/node AS deps
WORKDIR /app
COPY package.json package-lock.json* ./
RUN --mount=type=cache,target=/root/.npm if [ -f package-lock.json ]; then npm ci; else npm install --no-audit --no-fund; fi

FROM parent/node AS builder
WORKDIR /app
ENV NEXT_TELEMETRY_DISABLED=1
COPY --from=deps /app/node_modules ./node_modules
COPY . .
RUN npm run build

FROM parent/node AS runner
WORKDIR /app
ENV NODE_ENV=production NEXT_TELEMETRY_DISABLED=1
COPY --from=builder /app/public ./public
COPY --from=builder --chown=node:node /app/.next/standalone ./
COPY --from=builder --chown=node:node /app/.next/static ./.next/static
USER node
EXPOSE 3000
ENV PORT=3000
CMD ["node", "server.js"]
`,
      ".dockerignore": "node_modules\n.next\n.git\n",
      "package.json": JSON.stringify({
        ...{ name: "hello", private: true, scripts: { build: "next build" } },
        dependencies: { next: "15.5.6", react: "19.2.0", "react-dom": "19.2.0" },
      }),
      "next.config.mjs": 'export default { output: "standalone" };\n',
      "public/robots.txt": "User-agent: *\n",
      "app/layout.js":
        'export default function Layout({ children }) {\n  return <html lang="en"><body>{children}</body></html>;\n}\n',
      "app/page.js": "export default function Page() {\n  return <p>Hello from next</p>;\n}\n",
    },
  },
  java: {
    parents: ["java"],
    files: {
      Dockerfile: `FROM parent/java AS build
WORKDIR /build
COPY src ./src
RUN javac -d classes src/Server.java && jar --create --file app.jar --main-class Server -C classes .

FROM parent/java
WORKDIR /app
COPY --from=build /build/app.jar app.jar
ENV JAVA_OPTS="-XX:MaxRAMPercentage=75"
EXPOSE 8082
ENTRYPOINT exec java $JAVA_OPTS -jar app.jar
`,
      "src/Server.java": `import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

public class Server {
  public static void main(String[] words) throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress(8082), 0);
    server.createContext("/", exchange -> {
      byte[] text = "Hello from java".getBytes();
      exchange.sendResponseHeaders(200, text.length);
      exchange.getResponseBody().write(text);
      exchange.close();
    });
    server.start();
  }
}
`,
    },
  },
  rust: {
    parents: ["rust", "debian"],
    files: {
      Dockerfile: `FROM parent/rust AS build
WORKDIR /usr/src/app
COPY Cargo.toml Cargo.lock ./
RUN mkdir src && echo "fn main() {}" > src/main.rs && cargo build --release && rm -r src
COPY src ./src
RUN --mount=type=cache,target=/usr/local/cargo/registry touch src/main.rs && cargo build --release

FROM parent/debian
COPY --from=build /usr/src/app/target/release/hello /usr/local/bin/hello
EXPOSE 8083
CMD ["hello"]
`,
      "Cargo.toml": '[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n',
      "Cargo.lock": 'version = 3\n\n[[package]]\nname = "hello"\nversion = "0.1.0"\n',
      "src/main.rs": `use std::io::{Read, Write};
use std::net::TcpListener;

fn main() {
    for stream in TcpListener::bind("0.0.0.0:8083").unwrap().incoming() {
        let mut stream = stream.unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let text = "Hello from rust";
        let _ = write!(stream, "HTTP/1.1 200 OK\\r\\ncontent-length: {}\\r\\nconnection: close\\r\\n\\r\\n{}", text.len(), text);
    }
}
`,
    },
  },
};
