// Drawn with other builder files: its rules are its own, and .ci/run shows them with every change.
import assert from "node:assert/strict";
import { access, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { drawCases, runsAll } from "../../../test/support/draw-cases.ts";
import { guardMs } from "../../../test/support/eventually.ts";
import { withoutPypi } from "../../../test/support/without-pypi.ts";
import { run, systemPath } from "../../kit/exec.ts";
import { attempt, imageOf } from "../../ports/builder.suite.ts";
import type { Image } from "../../ports/builder.ts";
import { makeTestBuilder, visit, withoutRegistry, type TestBuilder } from "../../../test/support/process-builder.ts";

const lock = (dev: boolean) =>
  JSON.stringify({
    ...{ name: "x", version: "1.0.0", lockfileVersion: 3, requires: true },
    packages: {
      "": { name: "x", version: "1.0.0", [dev ? "devDependencies" : "dependencies"]: { "is-number": "7.0.0" } },
      "node_modules/is-number": {
        version: "7.0.0",
        integrity: "sha512-41Cifkg6e8TylSpdtTpeLVMqvSBEVzTttHvERD741+pnZ8ANv0004MRL43QKPDlK9cGvNp6NZWZUBlbGXYxxng==",
        ...(dev ? { dev: true } : {}),
      },
    },
  });
const server = `require("http").createServer((q, s) => s.end(process.version + " " + require("is-number")(5))).listen(process.env.PORT);`;
const nodeApp = {
  "package.json": JSON.stringify({
    name: "x",
    version: "1.0.0",
    scripts: { start: "node app.js" },
    dependencies: { "is-number": "7.0.0" },
  }),
  "package-lock.json": lock(false),
  "app.js": server,
};
const builtApp = {
  "package.json": JSON.stringify({
    name: "x",
    version: "1.0.0",
    scripts: { build: "node build.js" },
    devDependencies: { "is-number": "7.0.0" },
  }),
  "package-lock.json": lock(true),
  "build.js": `require("is-number"); const fs = require("fs"); fs.mkdirSync("dist"); fs.writeFileSync("dist/index.html", "built");
    fs.mkdirSync("node_modules/.cache", {recursive: true}); console.log(fs.existsSync("node_modules/.cache/kept") ? "cache: kept" : "cache: cold"); fs.writeFileSync("node_modules/.cache/kept", "");`,
};
const serverOfBuilt = {
  ...builtApp,
  "server.js": `require("http").createServer((q, s) => s.end(require("fs").readFileSync("dist/index.html"))).listen(process.env.PORT);`,
};

const withoutPython = (await withoutPypi()) ?? false;

let test: TestBuilder;
before(async () => {
  test = await makeTestBuilder();
});
after(() => test.close());

const contentOf = (image: Image) => join(test.options.releasesDir, "prj_suite", image.image_ref.slice(7), "app");
const has = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

const languages = [
  ...["Python applications", "Python applications that uv or Poetry has locked", "Go applications"],
  ...["Rust applications", "Java applications", "Ruby and PHP applications"],
];
const drawn = drawCases(languages, 2);

/** Describes a language other than Node.js, which every run tests. */
function describeLanguage(name: string, options: { readonly skip?: string | false }, define: () => void): void {
  assert.ok(languages.includes(name));
  if (drawn.includes(name)) describe(name, options, define);
}

describe("Node applications", { skip: withoutRegistry }, () => {
  const rules: Readonly<Record<string, () => Promise<void>>> = {
    "are installed from the lock file and run": async () => {
      const image = imageOf((await attempt(test.builder, nodeApp)).outcome);
      assert.equal(image.web_command, "node app.js");
      assert.deepEqual(await visit(test, image), { status: 200, text: `${process.version} true` });
    },

    "are not installed again when only the source changed": async () => {
      await attempt(test.builder, nodeApp);
      const { outcome, lines } = await attempt(test.builder, { ...nodeApp, "app.js": `/* changed */${server}` });
      assert.ok(
        lines.some((line) => line.includes("nothing changed")),
        lines.join("\n"),
      );
      assert.ok(!lines.some((line) => line.includes("npm ci")));
      assert.equal((await visit(test, imageOf(outcome))).status, 200);
    },

    "give the same image whether dependencies were installed or taken from an earlier build": async () => {
      const first = imageOf((await attempt(test.builder, nodeApp, { project_id: "prj_same" })).outcome);
      const second = imageOf((await attempt(test.builder, nodeApp, { project_id: "prj_same" })).outcome);
      assert.equal(second.image_ref, first.image_ref);
      assert.equal(second.size_bytes, first.size_bytes);
    },

    "share what a lock file alone decides: nothing that one project's build does to it reaches the next": async () => {
      const spoil = `for (const file of ["node_modules/is-number/index.js", "/cache/npm/spoilt"]) try { require("fs").writeFileSync(file, "spoilt"); } catch {}`;
      const files = { ...serverOfBuilt, "build.js": `${serverOfBuilt["build.js"]}\n${spoil}` };
      imageOf((await attempt(test.builder, files, { project_id: "prj_first" })).outcome);
      await test.builder.settle();
      const of = { project_id: "prj_second", project_number: 2 };
      const { lines, outcome } = await attempt(test.builder, serverOfBuilt, of);
      imageOf(outcome);
      assert.ok(
        lines.some((line) => line.includes("from the same lock file")),
        lines.join("\n"),
      );
      const own = { project_id: "prj_third", project_number: 3, env: { npm_config_legacy_peer_deps: "true" } };
      const third = await attempt(test.builder, serverOfBuilt, own);
      assert.ok(
        third.lines.some((line) => line.includes("npm ci")),
        "its own settings for npm take part",
      );
    },

    "have development dependencies for their build but not in the image, at the first build and later": async () => {
      for (const comment of ["1", "2", "3"]) {
        const { outcome } = await attempt(test.builder, { ...serverOfBuilt, "note.txt": comment });
        const image = imageOf(outcome);
        assert.equal((await visit(test, image)).text, "built");
        assert.equal(await has(join(contentOf(image), "node_modules/is-number")), false);
      }
    },

    "have all their dependencies again after a build that removed one": async () => {
      const build = `require("is-number"); require("fs").rmSync("node_modules/is-number", { recursive: true });`;
      const files = { ...serverOfBuilt, "build.js": `${build}\n${serverOfBuilt["build.js"]}` };
      for (const comment of ["1", "2", "3"])
        imageOf((await attempt(test.builder, { ...files, "note.txt": comment })).outcome);
    },

    "find their dependencies as they were installed, whatever an earlier build wrote into them": async () => {
      const build = `const file = "node_modules/is-number/index.js"; console.log("size", require("fs").statSync(file).size); require("fs").appendFileSync(file, "// more");`;
      const files = { ...serverOfBuilt, "build.js": `${build}\n${serverOfBuilt["build.js"]}` };
      const sizes: (string | undefined)[] = [];
      for (const comment of ["1", "2", "3"]) {
        const { lines } = await attempt(test.builder, { ...files, "note.txt": comment }, { project_id: "prj_written" });
        sizes.push(lines.find((line) => /size \d+/.test(line)));
        if (comment === "3")
          assert.ok(
            lines.some((line) => line.includes("nothing changed")),
            lines.join("\n"),
          );
      }
      assert.ok(sizes[0] !== undefined);
      assert.deepEqual(sizes, [sizes[0], sizes[0], sizes[0]]);
    },

    "keep the caches of their build tools from build to build, and out of the image": async () => {
      const of = { project_id: "prj_caches" };
      await attempt(test.builder, serverOfBuilt, of);
      const { lines, outcome } = await attempt(test.builder, { ...serverOfBuilt, "note.txt": "again" }, of);
      assert.ok(
        lines.some((line) => line.includes("cache: kept")),
        lines.join("\n"),
      );
      assert.equal(await has(join(contentOf(imageOf(outcome)), "node_modules/.cache")), false);
    },

    "that only build a site are served as static files, with index.html for unknown pages": async () => {
      const image = imageOf((await attempt(test.builder, builtApp)).outcome);
      assert.equal(image.kind, "static");
      assert.deepEqual(await readdir(contentOf(image)), ["site", "static-server.mjs"]);
      assert.deepEqual(await visit(test, image, "/some/page"), { status: 200, text: "built" });
    },

    "may be started by npm, which is there at run time": async () => {
      const files = { ...nodeApp, Procfile: "web: npm start --silent" };
      assert.equal((await visit(test, imageOf((await attempt(test.builder, files)).outcome))).status, 200);
    },

    "without a lock file are installed all the same, with a note": async () => {
      const { "package-lock.json": _, ...files } = nodeApp;
      const { outcome, lines } = await attempt(test.builder, files);
      assert.equal(outcome.outcome, "built");
      assert.ok(lines.some((line) => line.includes("No lock file")));
    },

    "compile native code with Node's own headers, and fetch none": async () => {
      const files = {
        "package.json": JSON.stringify({ scripts: { build: "node-gyp rebuild --verbose", start: "node app.js" } }),
        "binding.gyp": '{ "targets": [{ "target_name": "own", "sources": ["own.c"] }] }',
        "own.c": `#include <node_api.h>\nstatic napi_value init(napi_env env, napi_value exports) { napi_value v; napi_create_string_utf8(env, "compiled", 8, &v); return v; }\nNAPI_MODULE(own, init)`,
        "app.js": `require("http").createServer((q, s) => s.end(require("./build/Release/own.node"))).listen(process.env.PORT);`,
      };
      const { outcome, lines } = await attempt(test.builder, files);
      assert.doesNotMatch(lines.join("\n"), /gyp http/);
      assert.equal((await visit(test, imageOf(outcome))).text, "compiled");
    },

    "that declare no dependency need no install": async () => {
      const files = {
        "package.json": "{}",
        "server.js": `require("http").createServer((q, s) => s.end("bare")).listen(process.env.PORT)`,
      };
      const { outcome, lines } = await attempt(test.builder, files);
      assert.ok(!lines.some((line) => line.includes("Installing")));
      assert.equal((await visit(test, imageOf(outcome))).text, "bare");
    },
  };
  for (const [name, rule] of drawCases(Object.entries(rules), 4)) it(name, rule);
});

describeLanguage("Python applications", { skip: withoutPython }, () => {
  const source = `import os, itsdangerous
from http.server import BaseHTTPRequestHandler, HTTPServer
class Hello(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(itsdangerous.__name__.encode())
HTTPServer(("0.0.0.0", int(os.environ["PORT"])), Hello).serve_forever()
`;
  const files = { "main.py": source, "requirements.txt": "itsdangerous==2.2.0\n" };

  it("get a virtual environment that is valid at run time", async () => {
    const image = imageOf((await attempt(test.builder, files)).outcome);
    assert.equal(image.web_command, "python main.py");
    assert.deepEqual(await visit(test, image), { status: 200, text: "itsdangerous" });
  });

  it("are not installed again when only the source changed", async () => {
    await attempt(test.builder, files);
    const { outcome, lines } = await attempt(test.builder, { ...files, "note.txt": "changed" });
    assert.ok(lines.some((line) => line.includes("nothing changed")));
    assert.equal((await visit(test, imageOf(outcome))).status, 200);
  });
});

describeLanguage("Python applications that uv or Poetry has locked", { skip: withoutPython }, () => {
  const source = `import os, itsdangerous, importlib.util as u
from http.server import BaseHTTPRequestHandler, HTTPServer
class Hello(BaseHTTPRequestHandler):
    def do_GET(self):
        others = [name for name in ("uv", "poetry", "six") if u.find_spec(name)]
        self.send_response(200); self.end_headers(); self.wfile.write(f"{itsdangerous.__version__} {others}".encode())
HTTPServer(("0.0.0.0", int(os.environ["PORT"])), Hello).serve_forever()
`;
  const sha256 = {
    itsdangerous: "c6242fc49e35958c8b15141343aa660db5fc54d4f13a1db01a3f5891b98700ef",
    six: "4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274",
  };
  const uv = {
    "pyproject.toml": `[project]
name = "web"
version = "0.1.0"
requires-python = ">=3.9"
dependencies = ["itsdangerous==2.2.0"]
`,
    "uv.lock": `version = 1
revision = 5
requires-python = ">=3.9"

[[package]]
name = "itsdangerous"
version = "2.2.0"
source = { registry = "https://pypi.org/simple" }
sdist = { url = "https://files.pythonhosted.org/packages/9c/cb/8ac0172223afbccb63986cc25049b154ecfb5e85932587206f42317be31d/itsdangerous-2.2.0.tar.gz", hash = "sha256:e0050c0b7da1eea53ffaf149c0cfbb5c6e2e2b69c4bef22c81fa6eb73e5f6173", size = 54410, upload-time = "2024-04-16T21:28:15.614Z" }
wheels = [
    { url = "https://files.pythonhosted.org/packages/04/96/92447566d16df59b2a776c0fb82dbc4d9e07cd95062562af01e408583fc4/itsdangerous-2.2.0-py3-none-any.whl", hash = "sha256:${sha256.itsdangerous}", size = 16234, upload-time = "2024-04-16T21:28:14.499Z" },
]

[[package]]
name = "web"
version = "0.1.0"
source = { virtual = "." }
dependencies = [
    { name = "itsdangerous" },
]

[package.metadata]
requires-dist = [{ name = "itsdangerous", specifier = "==2.2.0" }]
`,
  };
  const poetry = {
    "pyproject.toml": `[tool.poetry]
name = "web"
version = "0.1.0"
package-mode = false
[tool.poetry.dependencies]
python = "^3.9"
itsdangerous = "2.2.0"
[tool.poetry.group.dev.dependencies]
six = "1.17.0"
# Mirrors have this list, and not always what Poetry asks pypi.org for otherwise.
[[tool.poetry.source]]
name = "index"
url = "https://pypi.org/simple/"
priority = "primary"
`,
    "poetry.lock": `[[package]]
name = "itsdangerous"
version = "2.2.0"
description = ""
optional = false
python-versions = ">=3.8"
groups = ["main"]
files = [{file = "itsdangerous-2.2.0-py3-none-any.whl", hash = "sha256:${sha256.itsdangerous}"}]

[package.source]
type = "legacy"
url = "https://pypi.org/simple"
reference = "index"

[[package]]
name = "six"
version = "1.17.0"
description = ""
optional = false
python-versions = "*"
groups = ["dev"]
files = [{file = "six-1.17.0-py2.py3-none-any.whl", hash = "sha256:${sha256.six}"}]

[package.source]
type = "legacy"
url = "https://pypi.org/simple"
reference = "index"

[metadata]
lock-version = "2.1"
python-versions = "^3.9"
content-hash = "d4882170027dc8d10367b54b63b1057c97de7b648fac69c78c36ea09783f44a9"
`,
  };

  // Poetry itself consists of 30 packages; a build installs them in a minute.
  if (runsAll)
    it("in Poetry's format without a lock file are installed from pyproject.toml, with a note", async () => {
      const { "poetry.lock": _, ...files } = { ...poetry, "main.py": source };
      const { outcome, lines } = await attempt(test.builder, files);
      assert.deepEqual(await visit(test, imageOf(outcome)), { status: 200, text: "2.2.0 []" });
      assert.match(lines.join("\n"), /poetry\.lock/);
    });

  for (const [name, locked] of Object.entries(runsAll ? { uv, poetry } : { uv })) {
    const files = { "main.py": source, ...locked };

    it(`get what ${name}'s lock file names, once, and nothing of ${name} or for development`, async () => {
      const image = imageOf((await attempt(test.builder, files)).outcome);
      assert.deepEqual(await visit(test, image), { status: 200, text: "2.2.0 []" });
      const { lines } = await attempt(test.builder, { ...files, "note.txt": "changed" });
      assert.ok(
        lines.some((line) => line.includes("nothing changed")),
        lines.join("\n"),
      );
    });

    it(`are refused where ${name}'s lock file is older than pyproject.toml`, async () => {
      const changed = { ...files, "pyproject.toml": files["pyproject.toml"].replace("2.2.0", "2.1.2") };
      const { outcome } = await attempt(test.builder, changed);
      assert.equal(outcome.outcome === "failed" && outcome.failure.code, "lock_out_of_sync");
    });
  }
});

describeLanguage("Go applications", {}, () => {
  it("are compiled into one program", async (t) => {
    if (test.options.goRoot === null) return t.skip("SKIPPED: no go");
    const files = {
      "go.mod": "module example.com/hello\n\ngo 1.18\n",
      "main.go": "package main\n\nfunc main() { println(1) }\n",
    };
    const image = imageOf((await attempt(test.builder, files)).outcome);
    assert.deepEqual([image.kind, image.web_command], ["go", "./bin/web"]);
    assert.ok(await has(join(contentOf(image), "bin/web")));
  });
});

describeLanguage("Rust applications", {}, () => {
  const main = (text: string) => `use std::io::{Read, Write};
fn main() {
    let port = std::env::var("PORT").unwrap();
    for stream in std::net::TcpListener::bind(format!("0.0.0.0:{port}")).unwrap().incoming() {
        let mut stream = stream.unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\n${text}");
    }
}
`;
  const files = {
    "Cargo.toml": `[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2021"\n`,
    "Cargo.lock": `version = 3\n\n[[package]]\nname = "hello"\nversion = "0.1.0"\n`,
    "src/main.rs": main("first"),
  };

  it("are compiled into a program, anew for each change, and leave what Cargo keeps out of the image", async (t) => {
    if (test.options.languages.rustRoot === null) return t.skip("SKIPPED: no Rust");
    const image = imageOf((await attempt(test.builder, files)).outcome);
    assert.deepEqual([image.kind, image.web_command], ["rust", "./bin/hello"]);
    assert.equal((await visit(test, image)).text, "first");
    assert.deepEqual((await readdir(contentOf(image))).sort(), ["Cargo.lock", "Cargo.toml", "bin", "src"]);
    const changed = await attempt(test.builder, { ...files, "src/main.rs": main("second") });
    assert.equal((await visit(test, imageOf(changed.outcome))).text, "second");
  });
});

describeLanguage("Java applications", {}, () => {
  const source = `import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
public class Main {
  public static void main(String[] args) throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress(Integer.getInteger("server.port")), 0);
    server.createContext("/", exchange -> {
      byte[] text = System.getProperty("java.version").getBytes();
      exchange.sendResponseHeaders(200, text.length);
      exchange.getResponseBody().write(text);
      exchange.close();
    });
    server.start();
  }
}
`;
  // Replaces Maven, because a build would have to download Maven's plugins.
  const mvnw = `set -e
test -f "\${0%/*}/pom.xml"
echo "repository $*"
mkdir -p target/classes
javac -d target/classes Main.java
jar --create --file target/hello-1.0.jar --main-class Main -C target/classes .
`;
  const files = { "pom.xml": "<project/>", mvnw, "Main.java": source };

  it("are built by their wrapper with the machine's JDK, and run with it", async (t) => {
    const [jdk] = test.options.languages.jdks;
    if (jdk === undefined) return t.skip("SKIPPED: no JDK");
    const { outcome, lines } = await attempt(test.builder, files);
    const image = imageOf(outcome);
    assert.match(image.web_command ?? "", /MaxRAM=.*-jar target\/hello-1\.0\.jar$/);
    assert.ok(
      lines.some((line) => line.includes("-Dmaven.repo.local=/cache/m2/repository")),
      lines.join("\n"),
    );
    assert.deepEqual(await visit(test, image), { status: 200, text: jdk.version });
  });

  it("take the machine's build tool where the wrapper cannot fetch its own, and say so", async (t) => {
    const { jdks, maven } = test.options.languages;
    if (jdks.length === 0 || maven === null) return t.skip("SKIPPED: no JDK with Maven");
    const lost = { ...files, mvnw: "echo 'curl: Failed to fetch https://example.org/maven.zip' >&2; exit 1" };
    const { lines } = await attempt(test.builder, { ...lost, "pom.xml": "<project>" });
    assert.ok(
      lines.some((line) => line.includes("The machine's own is used")),
      lines.join("\n"),
    );
    assert.ok(
      lines.some((line) => line.includes("POM /app/pom.xml")),
      lines.join("\n"),
    );
  });
});

describe(
  "Bun and Deno applications",
  { skip: runsAll ? withoutRegistry : "drawn by npm test -- --all: 100 MB are fetched" },
  () => {
    const hono = "sha512-YG/fo7zlU3KwrBL5vDpWKisLYiM+nVstBQqfr7gCPbSYURnNEP9BDxEMz8KfsDR9JX0lJWDRNc6nXX31v7ZEyg==";
    const source = `import { Hono } from "hono";\nconst app = new Hono();\napp.get("/", (c) => c.text(navigator.userAgent));\n`;
    const bun = {
      "package.json": JSON.stringify({ name: "x", dependencies: { hono: "4.10.4" } }),
      "bun.lock": JSON.stringify({
        ...{ lockfileVersion: 1, workspaces: { "": { name: "x", dependencies: { hono: "4.10.4" } } } },
        packages: { hono: ["hono@4.10.4", "", {}, hono] },
      }),
      "src/index.ts": `${source}export default app;\n`,
    };
    const deno = {
      "deno.json": JSON.stringify({ imports: { hono: "npm:hono@4.10.4" }, tasks: { start: "deno run -N main.ts" } }),
      "deno.lock": JSON.stringify({
        ...{ version: "5", specifiers: { "npm:hono@4.10.4": "4.10.4" }, npm: { "hono@4.10.4": { integrity: hono } } },
        workspace: { dependencies: ["npm:hono@4.10.4"] },
      }),
      "main.ts": `${source}Deno.serve(app.fetch);\n`,
    };

    for (const [name, files] of Object.entries({ Bun: bun, Deno: deno })) {
      it(`${name} runs a Hono application as locked, and installs nothing again`, async () => {
        const image = imageOf((await attempt(test.builder, files)).outcome);
        assert.match((await visit(test, image)).text, new RegExp(`^${name}/`));
        const { lines } = await attempt(test.builder, { ...files, "note.txt": "changed" });
        assert.ok(
          lines.some((line) => line.includes("nothing changed")),
          lines.join("\n"),
        );
      });
    }
  },
);

describeLanguage("Ruby and PHP applications", {}, () => {
  const rack = `run ->(env) { [200, {"content-type" => "text/plain"}, [RUBY_ENGINE]] }\n`;

  it("a Rack application is served by puma, with the machine's gems where they fit", async (t) => {
    if (test.options.languages.ruby === null || !(await has("/usr/bin/puma")))
      return t.skip("SKIPPED: no ruby with puma");
    const files = { "config.ru": rack, Procfile: "web: puma -b tcp://0.0.0.0:$PORT" };
    const image = imageOf((await attempt(test.builder, files)).outcome);
    assert.deepEqual(await visit(test, image), { status: 200, text: "ruby" });
  });

  it("Bundler takes gems of Debian as locked, without a registry", async (t) => {
    if (test.options.languages.ruby === null || !(await has("/usr/bin/puma")))
      return t.skip("SKIPPED: no ruby with puma");
    const gemfile = 'source "https://rubygems.org"\ngem "puma"\n';
    const files = { "config.ru": rack, Gemfile: gemfile, "Gemfile.lock": await lockGems(gemfile) };
    const { outcome, lines } = await attempt(test.builder, files);
    const image = imageOf(outcome);
    assert.ok(
      lines.some((line) => /Using puma \d/.test(line)),
      lines.join("\n"),
    );
    assert.equal(image.web_command, "bundle exec puma --bind tcp://0.0.0.0:$PORT");
    assert.deepEqual(await visit(test, image), { status: 200, text: "ruby" });
  });

  it("a Gemfile with Jekyll (here a stand-in, a gem of the source) becomes a static site", async (t) => {
    if (test.options.languages.ruby === null) return t.skip("SKIPPED: no ruby");
    const files = {
      Gemfile: 'gem "jekyll", path: "jekyll"\n',
      "jekyll/jekyll.gemspec": `Gem::Specification.new { |s| s.name = "jekyll"; s.version = "4.3.0"; s.summary = s.author = "x"; s.files = []; s.bindir = "bin"; s.executables = ["jekyll"] }`,
      "jekyll/bin/jekyll": `Dir.mkdir(ARGV.fetch(2)); File.write(ARGV[2] + "/index.html", ARGV.first + ENV["JEKYLL_ENV"])`,
    };
    const image = imageOf((await attempt(test.builder, files)).outcome);
    assert.deepEqual([image.kind, (await visit(test, image)).text], ["static", "buildproduction"]);
  });

  it("PHP's own server serves public/, and index.php for paths without a file", async (t) => {
    if (test.options.languages.php === null) return t.skip("SKIPPED: no php");
    const files = {
      "public/index.php": `<?php echo $_SERVER["REQUEST_URI"], extension_loaded("ctype") ? "" : " without extensions";`,
      "secret.txt": "",
    };
    const image = imageOf((await attempt(test.builder, files)).outcome);
    assert.deepEqual(await visit(test, image, "/some/page"), { status: 200, text: "/some/page" });
    assert.equal((await visit(test, image, "/secret.txt")).status, 404);
  });

  it("the packages of a committed vendor/ are used as they are", async (t) => {
    if (test.options.languages.php === null) return t.skip("SKIPPED: no php");
    const files = {
      "index.php": `<?php require __DIR__ . "/vendor/autoload.php"; echo Acme\\Greeting::said();`,
      "composer.json": JSON.stringify({ require: { "acme/greeting": "1.0.0" } }),
      "vendor/autoload.php": `<?php require "acme/greeting/src/Greeting.php";`,
      "vendor/acme/greeting/src/Greeting.php": `<?php namespace Acme; class Greeting { static function said() { return "ahoy"; } }`,
    };
    assert.equal((await visit(test, imageOf((await attempt(test.builder, files)).outcome))).text, "ahoy");
  });
});

/** Returns Bundler's lock file for the gems of this machine. */
async function lockGems(gemfile: string): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "berth-gems-"));
  try {
    await writeFile(join(dir, "Gemfile"), gemfile);
    const env = { PATH: systemPath, HOME: dir };
    const locked = await run({ file: "bundle", args: ["lock", "--local"] }, { cwd: dir, env, timeoutMs: guardMs });
    assert.equal(locked.exitCode, 0, locked.stderr);
    return await readFile(join(dir, "Gemfile.lock"), "utf8");
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

describe("Static files", () => {
  it("are served as they are", async () => {
    const image = imageOf(
      (await attempt(test.builder, { "index.html": "root", "about/index.html": "about", ".env": "SECRET=1" })).outcome,
    );
    assert.deepEqual(await visit(test, image, "/about/"), { status: 200, text: "about" });
    assert.equal((await visit(test, image, "/.env")).status, 404);
  });

  it("in public/ are a site", async () => {
    const image = imageOf(
      (await attempt(test.builder, { "public/index.html": "public", "README.md": "hidden" })).outcome,
    );
    assert.equal((await visit(test, image)).text, "public");
    assert.equal((await visit(test, image, "/README.md")).status, 404);
  });
});

describe("A Procfile alone", () => {
  it("runs the files as they are", async () => {
    const files = {
      Procfile: "web: node start.js",
      "start.js": `require("http").createServer((q, s) => s.end("as is")).listen(process.env.PORT)`,
    };
    const image = imageOf((await attempt(test.builder, files)).outcome);
    assert.equal(image.kind, "procfile");
    assert.equal((await visit(test, image)).text, "as is");
  });
});
