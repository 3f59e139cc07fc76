import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { readdir, readFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { until } from "../../src/kit/until.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "../e2e/platform.ts";
import { createAnswerCheck, operationNamer, type AnswerCheck } from "../support/answer-check.ts";
import { guardMs } from "../support/eventually.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { shopApp } from "./shop-app.ts";

// oxlint-disable-next-line typescript/no-explicit-any
export type Json = any;

/** A response that has been checked against the OpenAPI document. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Json;
}

/** Callers of the API. `limited` may only read projects, `careful` is an owner in approval mode, `stranger` owns another organization, `nobody` sends no token. */
export type Caller = "operator" | "owner" | "member" | "limited" | "careful" | "stranger" | "nobody";

export interface Given {
  /** A caller, or the text of a token. Default: the owner. */
  readonly as?: Caller | (string & {});
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A running platform with one deployed application, and the functions to test it from outside. */
export interface Subject {
  readonly platform: TestPlatform;
  readonly dns: TestDnsServer;
  readonly shop: TestApp;
  readonly tokens: Readonly<Record<Exclude<Caller, "nobody">, string>>;
  /** Operation and status of every response so far: `projects.get 200`. */
  readonly seen: ReadonlySet<string>;
  /** Texts that no later response may contain. */
  readonly secrets: Set<string>;
  call(method: string, path: string, given?: Given): Promise<Answer>;
  /** Like `call`, and asserts the status. */
  expect(status: number, method: string, path: string, given?: Given): Promise<Answer>;
  /** Requests a page of an application through the edge, by any of its hostnames. */
  visit(host: string, path?: string): Promise<{ status: number; body: string }>;
  /** Runs `ask`, which needs an approval, opens the link that the operator received, and submits the choice. Resolves with the approval's id. */
  decide(choice: "approved" | "denied", ask: () => Promise<Answer>): Promise<string>;
  destroy(): Promise<void>;
}

/** Hostnames: one with correct DNS records from the beginning, one that gets them later, and one with wrong records. */
export const hostnames = { ready: "www.ready.test", late: "www.late.test", wrong: "www.wrong.test" } as const;
export const address = "192.0.2.7";

const startOn = (dns: { readonly address: string }) =>
  startPlatform(
    {
      BERTH_DNS_SERVERS: dns.address,
      BERTH_PUBLIC_ADDRESSES: address,
      BERTH_READS_PER_MINUTE: "100000",
      BERTH_WRITES_PER_MINUTE: "100000",
      BERTH_HEALTH_BUDGET_SECONDS: "10",
      BERTH_DRAIN_SECONDS: "1",
      BERTH_STOP_GRACE_SECONDS: "2",
      BERTH_BACKUP_WINDOW: "never",
    },
    { startsFromNothing: true },
  );

/** Starts the platform, with `shop` pushed twice and a database. */
export async function startSubject(): Promise<Subject> {
  const dns = await startDnsServer();
  dns.set(hostnames.ready, { type: "A", value: address });
  dns.set(hostnames.wrong, { type: "A", value: "198.51.100.9" });
  const platform = await startOn(dns).catch(async (error: unknown) => {
    await dns.close();
    throw error;
  });
  const document = await (await fetch(`${platform.api}/v1/openapi.json`)).json();
  const known: Known = {
    platform,
    check: createAnswerCheck(document),
    nameOf: operationNamer(document),
    tokens: new Map(),
    seen: new Set(),
    secrets: new Set(),
  };
  known.tokens.set("operator", platform.token);
  await makeCallers(known);
  const call = (method: string, path: string, body?: unknown) => callOf(known, method, path, { as: "owner", body });
  const shop = await createApp({ api: platform.api, token: platform.token, call } as never, "shop", shopApp("one"));
  const subject: Subject = {
    platform,
    dns,
    shop,
    tokens: Object.fromEntries(known.tokens) as Subject["tokens"],
    seen: known.seen,
    secrets: known.secrets,
    call: (method, path, given = {}) => callOf(known, method, path, given),
    expect: (status, method, path, given = {}) => expectOf(known, status, { method, path, given }),
    visit: (host, path = "/") => visit(platform.edgePort, host, path),
    decide: (choice, ask) => decide(known, choice, ask),
    async destroy() {
      await platform.destroy();
      await dns.close();
    },
  };
  return prepare(subject).catch(async (error: unknown) => {
    await subject.destroy();
    throw error;
  });
}

/** The value of a variable; no response may contain it. */
export const plantedValue = "planted-value-of-a-variable";

async function prepare(subject: Subject): Promise<Subject> {
  const { expect, shop, secrets } = subject;
  await expect(201, "POST", "/v1/projects/shop/database");
  await expect(204, "PUT", "/v1/projects/shop/env/PLANTED", { body: { value: plantedValue } });
  secrets.add(plantedValue);
  await expect(201, "POST", "/v1/projects/shop/domains", { body: { hostname: hostnames.late } });
  subject.dns.set(hostnames.late, { type: "A", value: address });
  for (const version of ["one", "two"]) {
    await shop.commit(shopApp(version));
    const pushed = await shop.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
  }
  const login = new URL((await subject.visit("shop.localhost", "/url")).body);
  secrets.add(decodeURIComponent(login.password));
  secrets.add((await subject.visit("shop.localhost", "/cron-secret")).body);
  return subject;
}

interface Known {
  readonly platform: TestPlatform;
  readonly check: AnswerCheck;
  readonly nameOf: (method: string, path: string) => string | undefined;
  readonly tokens: Map<string, string>;
  readonly seen: Set<string>;
  readonly secrets: Set<string>;
}

async function makeCallers(known: Known): Promise<void> {
  const make = async (caller: Caller, body: Readonly<Record<string, unknown>>) => {
    const made = await expectOf(known, 201, {
      method: "POST",
      path: "/v1/api-tokens",
      given: { as: "operator", body: { name: caller, ...body } },
    });
    known.tokens.set(caller, made.body.token);
  };
  await make("owner", { role: "owner" });
  await make("member", {});
  await make("limited", { scopes: ["projects:read"] });
  await make("careful", { role: "owner", approval_mode: true });
  const given = { as: "operator", body: { slug: "acme", name: "Acme" } };
  const org = await expectOf(known, 201, { method: "POST", path: "/v1/orgs", given });
  known.tokens.set("stranger", org.body.owner_token);
  for (const token of known.tokens.values()) known.secrets.add(token);
}

async function callOf(
  known: Known,
  method: string,
  path: string,
  { as = "owner", body, headers = {} }: Given,
): Promise<Answer> {
  const token = as === "nobody" ? undefined : (known.tokens.get(as) ?? as);
  const response = await fetch(`${known.platform.api}${path}`, {
    method,
    redirect: "manual",
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const contentType = response.headers.get("content-type");
  const fault = known.check(method, path, { status: response.status, contentType, text });
  assert.equal(fault, undefined, `${method} ${path} answered ${response.status} ${text.slice(0, 2000)}: ${fault}`);
  assert.ok(response.status !== 500, `${method} ${path}: ${text}`);
  assert.ok(response.headers.has("x-request-id"), "the response lacks the header x-request-id");
  for (const secret of known.secrets) assert.ok(!text.includes(secret), `${method} ${path} returned a secret`);
  known.seen.add(`${known.nameOf(method, path) ?? "none"} ${response.status}`);
  return { status: response.status, headers: response.headers, text, body: text === "" ? undefined : JSON.parse(text) };
}

interface Expected {
  readonly method: string;
  readonly path: string;
  readonly given: Given;
}

async function expectOf(known: Known, status: number, { method, path, given }: Expected): Promise<Answer> {
  let answer = await callOf(known, method, path, given);
  // There are more routes than an address may be refused in a minute.
  const retryAfter = given.as === "nobody" && status !== 429 ? answer.headers.get("retry-after") : null;
  if (answer.status === 429 && retryAfter !== null) {
    await sleep(Number(retryAfter) * 1000);
    answer = await callOf(known, method, path, given);
  }
  assert.equal(answer.status, status, `${method} ${path}: ${answer.text}`);
  return answer;
}

// The operator receives messages in the outbox folder. The test opens the link and submits the form, as a person does.
async function decide(known: Known, choice: "approved" | "denied", ask: () => Promise<Answer>): Promise<string> {
  const outbox = join(known.platform.dataDir, "outbox");
  const listed = async () => new Set((await readdir(outbox).catch(() => [])).filter((name) => name.endsWith(".txt")));
  const before = await listed();
  const asked = await ask();
  assert.equal(asked.body.code, "approval_required", asked.text);
  const { method, path } = (await callOf(known, "GET", `/v1/approvals/${asked.body.approval.id}`, {})).body;
  // Messages about earlier requests may arrive late, so select the one about this request.
  const link = await eventually("the operator received the message", async () => {
    for (const name of (await listed()).difference(before)) {
      const text = await readFile(join(outbox, name), "utf8");
      if (text.includes(`${method} ${path}\n`)) return new URL(/https?:\/\/\S+\/decide\/\S+/.exec(text)?.[0] ?? "");
    }
    return undefined;
  });
  known.secrets.add(link.pathname.split("/").at(-1) as string);
  const page = await fetch(`${known.platform.api}${link.pathname}`);
  const html = await page.text();
  assert.equal(page.status, 200, html);
  const nonce = /name="nonce" value="([\w-]+)"/.exec(html)?.[1] ?? "";
  const headers = { origin: known.platform.api };
  const form = { method: "POST", headers, body: new URLSearchParams({ nonce, choice }) };
  const decided = await fetch(`${known.platform.api}${link.pathname}`, form);
  assert.equal(decided.status, 200, await decided.text());
  return asked.body.approval.id as string;
}

function visit(port: number, host: string, path: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, path, headers: { host }, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }));
    });
    asked.on("error", reject).end();
  });
}

/** Polls until the result is truthy, and returns it; fails after the time limit. */
export async function eventually<T>(what: string, probe: () => Promise<T | undefined | false>): Promise<T> {
  const found = await until(async () => (await probe()) || undefined, { timeoutMs: guardMs, atMostMs: 500 });
  assert.ok(found !== undefined, `did not happen within ${guardMs / 1000} s: ${what}`);
  return found;
}
