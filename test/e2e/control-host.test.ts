import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as plainRequest } from "node:http";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { run, systemPath } from "../../src/kit/exec.ts";
import { withoutHaproxy } from "../support/edges.ts";
import { eventually, guardMs } from "../support/eventually.ts";
import { createApp, nodeApp } from "./platform.ts";
import { ask } from "./traffic.ts";
import { startVisitedPlatform, type VisitedPlatform } from "./ways.ts";

// Drawn with other journey files: it starts whole platforms, which takes too long for every run.

const control = "control.shop.test";
const slug = "calm";

interface Asked {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

describe("the control plane behind the edge, over HTTPS", { skip: withoutHaproxy }, () => {
  let platform: VisitedPlatform;
  let entrance: { readonly port: number; readonly ca: readonly string[] };
  let origin: string;
  before(async () => {
    const settings = { BERTH_HOST: control, BERTH_HSTS: "1" };
    platform = await startVisitedPlatform({ over: "https" }, [slug, control], settings);
    entrance = platform.entrance as typeof entrance;
    origin = `https://${control}:${entrance.port}`;
    const isServed = async () => (await askControl("/readyz").catch(() => ({ status: 0 }))).status === 200;
    await eventually(isServed, "the control plane responds through the edge");
  });
  after(() => platform?.destroy());

  test("the API responds over HTTPS with HSTS, and redirects HTTP requests to HTTPS", async () => {
    const me = await askControl("/v1/me", { headers: bearer(platform.token) });
    assert.equal(me.status, 200, me.body);
    assert.match(String(me.headers["strict-transport-security"]), /max-age=\d{6,}/);
    assert.deepEqual(await askPlainly("/v1/me?x=1"), [308, `${origin}/v1/me?x=1`]);
  });

  test("a push to a project's HTTPS git URL goes live, and the application receives its own HTTPS URL", async () => {
    const app = await createApp(platform, slug, appThatKnowsItsUrl);
    const { body } = await askControl(`/v1/projects/${slug}`, { headers: bearer(platform.token) });
    const remote = (JSON.parse(body) as { git: { https: string } }).git.https;
    assert.equal(remote, `${origin}/git/main/${slug}.git`);
    const pushed = await push(app.dir, remote);
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    const url = `https://${slug}.localhost:${entrance.port}`;
    assert.ok(pushed.stderr.includes(`Live at ${url} `), pushed.stderr);
    assert.equal((await ask(entrance, slug, "/")).body, url);
  });

  test("an approval link opens the decision page over HTTPS, and the page records the decision", async () => {
    const given = { name: "careful", role: "owner", approval_mode: true };
    const { body } = await platform.call<{ token: string }>("POST", "/v1/api-tokens", given);
    const project = { slug: "short-lived", name: "Short-lived" };
    await platform.call("POST", "/v1/projects", project);
    const deletion = { method: "DELETE", headers: bearer(body.token) };
    const asked = await askControl("/v1/projects/short-lived", deletion);
    assert.equal(asked.status, 403, asked.body);
    const link = await eventually(() => sentLink(platform.dataDir), "the outbox contains the message with the link");
    assert.ok(link.startsWith(`${origin}/decide/`), link);
    const path = link.slice(origin.length);
    const page = await askControl(path);
    assert.equal(page.status, 200, page.body);
    const nonce = /name="nonce" value="([^"]+)"/.exec(page.body)?.[1] ?? "";
    const form = new URLSearchParams({ nonce, choice: "approved" }).toString();
    const headers = { origin, "content-type": "application/x-www-form-urlencoded" };
    const decided = await askControl(path, { method: "POST", headers, body: form });
    assert.equal(decided.status, 200, decided.body);
    assert.notEqual((await askControl("/v1/projects/short-lived", deletion)).status, 403);
  });

  test("the dashboard is served, and its session cookie is Secure", async () => {
    const page = await askControl("/", { headers: { accept: "text/html" } });
    assert.match(String(page.headers["content-type"]), /^text\/html/);
    const headers = { origin, "x-berth-dashboard": "1", "content-type": "application/json" };
    const body = JSON.stringify({ token: platform.token });
    const opened = await askControl("/session", { method: "POST", headers, body });
    assert.equal(opened.status, 200, opened.body);
    assert.match(String(opened.headers["set-cookie"]), /; Secure$/);
  });

  function askControl(path: string, { method = "GET", headers = {}, body }: Asked = {}) {
    const host = `${control}:${entrance.port}`;
    const at = { host: "127.0.0.1", servername: control, ...entrance, ca: [...entrance.ca], agent: false as const };
    return new Promise<{ status: number; headers: Record<string, unknown>; body: string }>((resolve, reject) => {
      const asked = request({ ...at, path, method, headers: { ...headers, host } }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text });
        });
      });
      asked.on("error", reject).end(body);
    });
  }

  function askPlainly(path: string): Promise<[status: number | undefined, location: string | undefined]> {
    const at = {
      host: "127.0.0.1",
      port: platform.edgePort,
      path,
      headers: { host: control },
      agent: false as const,
    };
    return new Promise((resolve, reject) => {
      const asked = plainRequest(at, (response) => {
        response.resume();
        resolve([response.statusCode, response.headers.location]);
      });
      asked.on("error", reject).end();
    });
  }

  async function push(dir: string, remote: string) {
    const folder = mkdtempSync(join(tmpdir(), "berth-authority-"));
    writeFileSync(join(folder, "ca.pem"), entrance.ca.join(""));
    const settings = [
      `http.sslCAInfo=${join(folder, "ca.pem")}`,
      `http.curloptResolve=${control}:${entrance.port}:127.0.0.1`,
      `http.extraHeader=Authorization: Basic ${Buffer.from(`berth:${platform.token}`).toString("base64")}`,
    ];
    const args = [...settings.flatMap((each) => ["-c", each]), "push", remote, "HEAD:refs/heads/main"];
    const env = { PATH: systemPath, HOME: dir, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
    const pushed = await run({ file: "git", args }, { cwd: dir, env, timeoutMs: guardMs });
    rmSync(folder, { recursive: true });
    return pushed;
  }
});

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

const appThatKnowsItsUrl = {
  ...nodeApp(""),
  "server.js": `require("node:http").createServer((request, response) => response.end(process.env.BERTH_URL)).listen(process.env.PORT, process.env.HOST);\n`,
};

/** Returns the decision link in the newest message of the outbox. */
function sentLink(dataDir: string): string | undefined {
  const folder = join(dataDir, "outbox");
  const names = (() => {
    try {
      return readdirSync(folder);
    } catch {
      return [];
    }
  })();
  const texts = names
    .filter((name) => name.includes("-approval-"))
    .map((name) => readFileSync(join(folder, name), "utf8"));
  return texts.map((text) => /^https?:\/\/\S+\/decide\/\S+$/m.exec(text)?.[0]).findLast((link) => link !== undefined);
}
