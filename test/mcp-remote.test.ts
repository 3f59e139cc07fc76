import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, it } from "node:test";
import { Client as NewClient, StreamableHTTPClientTransport as NewTransport } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { limits } from "../src/contract/limits.ts";
import { routes } from "../src/contract/routes.ts";
import { changes, type Row } from "../src/contract/table.ts";
import { offeredTools } from "../src/mcp/tools.ts";
import { eventually } from "./support/eventually.ts";
import { testProject } from "./support/fixtures.ts";
import { testApi, testOrganization, testToken, type TestApi, type TestOrganization } from "./support/test-platform.ts";

let api: TestApi;
let organization: TestOrganization;
let demo: string;
before(async () => {
  api = await testApi();
  organization = await testOrganization(api.database.db, "acme");
  demo = (await testProject(api.platform, organization, "demo")).id;
  await testProject(api.platform, organization, "other");
});
after(() => api.close());

const url = () => new URL("/mcp", api.baseUrl);
const withToken = (token: string) => ({ requestInit: { headers: { authorization: `Bearer ${token}` } } });

async function old(token: string) {
  const client = new OldClient({ name: "old", version: "1" });
  await client.connect(new OldTransport(url(), withToken(token)) as unknown as Transport);
  return client;
}

async function recent(token: string) {
  const client = new NewClient({ name: "new", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new NewTransport(url(), withToken(token)));
  return client;
}

type AnyClient = Awaited<ReturnType<typeof old>> | Awaited<ReturnType<typeof recent>>;

async function call(client: AnyClient, name: string, given: Record<string, unknown>) {
  const { content, isError } = await client.callTool({ name, arguments: given });
  const [first] = content as { text: string }[];
  return { text: first?.text ?? "", isError: isError === true };
}

const limited = (more: Record<string, unknown> = {}) =>
  testToken(api.database.db, organization.id, { role: "owner", project_ids: [demo], ...more } as never);

for (const [generation, connect] of [
  ["an old client", old],
  ["a new client", recent],
] as const)
  describe(`${generation} at /mcp`, () => {
    it("lists the tools, calls them, and reads the documentation", async () => {
      const client = await connect(organization.owner);
      assert.ok((await client.listTools()).tools.some(({ name }) => name === "diagnose"));
      assert.match((await call(client, "projects", { action: "get", slug: "demo" })).text, /"slug":"demo"/);
      const { resources } = await client.listResources();
      const page = resources.find(({ uri }) => uri === "berth://docs/agents.md");
      const { contents } = await client.readResource({ uri: page?.uri ?? "" });
      assert.match((contents[0] as { text: string }).text, /\/mcp/);
      await assert.rejects(client.readResource({ uri: "berth://docs/../package.json" }));
      await client.close();
    });

    it("sends a list of a query as a repeated parameter", async () => {
      const client = await connect((await limited({ scopes: ["logs:read"] })).text);
      const read = (field: readonly string[]) =>
        call(client, "api_call", { route: "logs.list", params: { slug: "demo" }, query: { field } });
      assert.match((await read(["a=1", "b=2"])).text, /For what comes after these lines/);
      assert.match((await read(["a=1", "b"])).text, /field\.1: use a name and a value/);
      assert.match((await read(Array.from({ length: 6 }, (_, at) => `a=${at}`))).text, /at most 5 fields at once/);
      await client.close();
    });

    it("stays within the token's projects, and asks a person in approval mode", async () => {
      const client = await connect((await limited({ approval_mode: true })).text);
      const other = await call(client, "projects", { action: "get", slug: "other" });
      assert.ok(other.isError && other.text.includes('"code":"not_found"'), other.text);
      const asked = await call(client, "projects_change", { action: "delete", slug: "demo" });
      assert.ok(asked.isError && asked.text.includes('"code":"approval_required"'), asked.text);
      await client.close();
    });

    it("offers and does nothing that writes with a token that only reads", async () => {
      const reading = await testToken(api.database.db, organization.id, { role: "owner", scopes: ["projects:read"] });
      const client = await connect(reading.text);
      const { tools } = await client.listTools();
      assert.ok(tools.every(({ annotations }) => annotations?.readOnlyHint === true));
      for (const { name, actions } of offeredTools({ readOnly: false }))
        for (const action of [...actions].flatMap(([each, row]) => (changes(row) ? [each] : [])))
          assert.ok((await call(client, name, { action, slug: "demo" })).isError, `${name} ${action}`);
      for (const row of (routes as readonly Row[]).filter(changes))
        assert.ok((await call(client, "api_call", { route: row.name, params: { slug: "demo" } })).isError, row.name);
      await client.close();
    });
  });

const message = (more: object = {}) => ({ jsonrpc: "2.0", id: 1, method: "tools/list", ...more });
const calling = (name: string, given: object) => message({ method: "tools/call", params: { name, arguments: given } });

function post(headers: Record<string, string>, body: unknown = message(), signal?: AbortSignal, at = api.baseUrl) {
  const accept = "application/json, text/event-stream";
  const all = { "content-type": "application/json", accept, ...headers };
  return fetch(`${at}/mcp`, {
    method: "POST",
    headers: all,
    body: JSON.stringify(body),
    ...(signal ? { signal } : {}),
  });
}
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

describe("who may call /mcp", () => {
  it("refuses a request without a token, and one that has only a cookie", async () => {
    const { headers, body } = await api.call("POST", "/session", { body: { token: organization.owner } });
    const cookie = headers.get("set-cookie")?.split(";", 1)[0] ?? "berth_session=x";
    for (const own of [{}, { cookie }] as Record<string, string>[]) {
      const refused = await post(own);
      assert.equal(refused.status, 401, JSON.stringify(body));
      const metadata = `${api.baseUrl}/.well-known/oauth-protected-resource/mcp`;
      assert.equal(refused.headers.get("www-authenticate"), `Bearer resource_metadata="${metadata}"`);
    }
  });

  it("refuses a revoked token within a second", async () => {
    const { id, text: token } = await testToken(api.database.db, organization.id, { role: "member" });
    assert.equal((await post(bearer(token))).status, 200);
    assert.equal((await api.call("DELETE", `/v1/api-tokens/${id}`, { token: organization.owner })).status, 204);
    await eventually(async () => (await post(bearer(token))).status === 401, "a revoked token is refused");
  });

  it("ends an open subscription within a second of the token's revocation", async () => {
    const { id, text: token } = await testToken(api.database.db, organization.id, { role: "member" });
    const client = await recent(token);
    const { closed } = await client.listen({ toolsListChanged: true });
    assert.equal((await api.call("DELETE", `/v1/api-tokens/${id}`, { token: organization.owner })).status, 204);
    await closed;
    await client.close();
  });

  it("refuses pages of other sites, other methods, and names that are not the platform's address", async () => {
    const own = bearer(organization.owner);
    assert.equal((await post({ ...own, origin: "https://evil.example" })).status, 403);
    assert.equal((await post({ ...own, origin: "null" })).status, 403);
    const got = await fetch(url(), { headers: own });
    assert.equal(got.status, 405);
    assert.equal(got.headers.get("allow"), "POST");
    const { status, text } = await raw({ ...own, host: "shop.localhost" });
    assert.equal(status, 421);
    assert.ok(text.includes("/mcp"), text);
  });
});

describe("limits of /mcp", () => {
  it("refuses a body that is too large, and that of a call as the API does", async () => {
    const own = bearer(organization.owner);
    const huge = "x".repeat(limits.source_body_bytes + limits.request_body_bytes + 1);
    assert.equal((await post(own, message({ params: { huge } }))).status, 413);
    const name = "x".repeat(limits.request_body_bytes + 1);
    const answer = await (await post(own, calling("projects_change", { action: "create", slug: "big", name }))).text();
    assert.match(answer, /payload_too_large/);
    const long = calling("projects", { action: "get", slug: "x".repeat(limits.url_bytes) });
    assert.match(await (await post(own, long)).text(), /The URL is too long/);
  });

  it("answers calls beyond the rate with rate_limited", async () => {
    const narrow = await testApi({ http: { limits: { readsPerMinute: 20 } } });
    const { owner } = await testOrganization(narrow.database.db, "acme");
    const ask = () =>
      narrow.call("POST", "/mcp", {
        token: owner,
        body: calling("projects", { action: "list" }),
        headers: { accept: "application/json, text/event-stream" },
      });
    const answers = await Promise.all(Array.from({ length: 50 }, ask));
    await narrow.close();
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200, 429]));
    assert.ok(answers.every(({ status, headers }) => status === 200 || headers.get("retry-after") !== null));
  });

  it("ends a call whose client has left", async () => {
    const started = Promise.withResolvers<void>();
    let isFirst = true;
    const readRuntime = async () => {
      const isEndless = isFirst;
      isFirst = false;
      started.resolve();
      return isEndless ? new Promise<never>(() => {}) : { lines: [], cursor: "1" };
    };
    const narrow = await testApi({
      http: { limits: { largeReadsPerToken: 1 } },
      ports: { logStore: { readRuntime } as never },
    });
    const acme = await testOrganization(narrow.database.db, "acme");
    await testProject(narrow.platform, acme, "demo");
    const stop = new AbortController();
    const sent = post(bearer(acme.owner), calling("logs", { slug: "demo" }), stop.signal, narrow.baseUrl);
    const ended = assert.rejects(sent.then((answer) => answer.text()));
    // Another read of the log is refused as long as the call goes on.
    const read = async () => (await narrow.call("GET", "/v1/projects/demo/logs", { token: acme.owner })).status;
    await started.promise;
    assert.equal(await read(), 429);
    stop.abort();
    await ended;
    await eventually(async () => (await read()) === 200, "the call has ended");
    await narrow.close();
  });
});

describe("/skill.md", () => {
  it("names this platform's address, and only tools and actions that exist", async () => {
    const { status, text } = await api.call("GET", "/skill.md");
    assert.equal(status, 200);
    assert.ok(text.includes(`${api.platform.addresses.controlUrl.replace(/\/$/, "")}/mcp`));
    const tools = new Map(offeredTools({ readOnly: false }).map(({ name, actions }) => [name, actions]));
    const named = [...text.matchAll(/`(\w+)` with `\{"action":"(\w+)"/g)];
    assert.ok(named.length >= 3);
    for (const [, tool = "", action = ""] of named) assert.ok(tools.get(tool)?.has(action), `${tool} ${action}`);
  });
});

// fetch does not allow a custom Host header.
function raw(headers: Record<string, string>): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const asked = request(url(), { method: "POST", headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    asked.on("error", reject).end("{}");
  });
}
