import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { withoutRegistry } from "../support/process-builder.ts";
import { run, systemPath } from "../../src/kit/exec.ts";
import { consentBrowser, cookieFor } from "../support/consent.ts";
import { runsAll } from "../support/draw-cases.ts";
import { eventually, guardMs } from "../support/eventually.ts";
import { testProject } from "../support/fixtures.ts";
import { redirect } from "../support/mcp-clients.ts";
import { testFolder } from "../support/test-folder.ts";
import { testApi, testOrganization, type TestApi } from "../support/test-platform.ts";

interface RealClient {
  readonly npm: string;
  /** Commands, of which the first opens the browser; they get the URL of the server. */
  readonly commands: (url: string) => readonly (readonly string[])[];
  readonly files?: (url: string) => Readonly<Record<string, string>>;
  /** What the last command prints if it succeeded; default: the result of the tool. */
  readonly prints?: RegExp;
}

const clients: Readonly<Record<string, RealClient>> = {
  mcporter: {
    npm: "mcporter@0.12.3",
    commands: (url) => [
      ["mcporter", "auth", url, "--allow-http"],
      ["mcporter", "call", `${url}.projects`, "action=get", "slug=demo", "--allow-http"],
    ],
  },
  "mcp-inspector": {
    npm: "@modelcontextprotocol/inspector@2.12.0",
    commands: (url) => [
      [
        ...["mcp-inspector", "--cli", url, "--transport", "http", "--method", "tools/call"],
        ...["--tool-name", "projects", "--tool-arg", "action=get", "slug=demo"],
      ],
    ],
  },
  // These two call a tool only for a model, which takes an account.
  codex: {
    npm: "@openai/codex@0.171.0",
    commands: (url) => [
      ["codex", "mcp", "add", "berth", "--url", url],
      ["codex", "mcp", "list"],
    ],
    prints: /berth.*OAuth/,
  },
  opencode: {
    npm: "opencode-ai@1.18.33",
    files: (url) => ({ "opencode.json": JSON.stringify({ mcp: { berth: { type: "remote", url } } }) }),
    commands: () => [
      ["opencode", "mcp", "auth", "berth"],
      ["opencode", "mcp", "list"],
    ],
    prints: /berth.*connected/s,
  },
};

const skip = withoutRegistry || (!runsAll && "SKIPPED: it installs five clients; npm test -- --all runs it");

describe("clients of MCP connect from the address alone", { skip }, () => {
  const folder = testFolder("clients");
  const path = [dirname(process.execPath), join(folder, "bin"), process.env["PATH"] ?? systemPath].join(":");
  const trusted = ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "npm_config_registry"];
  const env = {
    ...Object.fromEntries(trusted.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []))),
    PATH: path,
    BROWSER: join(folder, "bin/xdg-open"),
    // The inspector opens no browser without a terminal unless it is told to.
    MCP_AUTO_OPEN_ENABLED: "true",
  };
  let api: TestApi | undefined;
  let url = "";
  let browser: ReturnType<typeof consentBrowser>;

  before(async () => {
    mkdirSync(join(folder, "bin"));
    writeFileSync(env.BROWSER, `#!/bin/sh\necho "$1" >"$HOME/opened"\n`);
    chmodSync(env.BROWSER, 0o755);
    api = await testApi();
    const organization = await testOrganization(api.database.db, "acme");
    await testProject(api.platform, organization, "demo");
    url = `${api.baseUrl}/mcp`;
    browser = consentBrowser(api.baseUrl, await cookieFor(api.baseUrl, organization.owner));
    // A platform that cannot read a program's description asks programs to register for the next hour.
    const query = { response_type: "code", client_id: "https://agent.example/client.json", redirect_uri: redirect };
    await browser.load(`/session/authorize?${new URLSearchParams(query).toString()}`);
  });
  after(() => api?.close());

  /** Installs a client in a home of its own; undefined if that fails. */
  async function install(npm: string) {
    const home = join(folder, npm.replaceAll("/", "-"));
    mkdirSync(home);
    writeFileSync(join(home, "package.json"), `{"private":true}`);
    const within = { cwd: home, env: { ...env, HOME: home, PATH: `${join(home, "node_modules/.bin")}:${path}` } };
    const args = ["install", "--no-audit", "--no-fund", "--loglevel=error", npm];
    const { exitCode, stderr } = await run({ file: "npm", args }, { ...within, timeoutMs: guardMs });
    return { within, missing: exitCode === 0 ? undefined : `SKIPPED: ${npm} cannot be installed: ${stderr}` };
  }

  /** Consents as a person whose browser a client opens, and brings the client its answer. */
  async function consent(home: string): Promise<void> {
    const opened = join(home, "opened");
    const asked = () => existsSync(opened) && readFileSync(opened, "utf8").trim();
    const { status, headers, html } = await browser.decide(await eventually(asked, "the client opens the browser"));
    assert.equal(status, 303, html);
    assert.ok((await fetch(headers.get("location") ?? "")).ok, "the client gets the answer");
  }

  for (const [name, { npm, commands, files, prints = /"?slug\\?"?: ?\\?"?'?demo/ }] of Object.entries(clients))
    it(`${name}: discovery, registration, consent and ${prints.source.includes("slug") ? "a call" : "a token"}`, async (t) => {
      const { within, missing } = await install(npm);
      if (missing !== undefined) return t.skip(missing);
      for (const [file, text] of Object.entries(files?.(url) ?? {})) writeFileSync(join(within.cwd, file), text);
      let printed = "";
      const consenting = consent(within.cwd);
      for (const [file = "", ...args] of commands(url)) {
        const ended = run({ file, args }, { ...within, timeoutMs: guardMs });
        await Promise.race([consenting, ended]);
        const { exitCode, stdout, stderr } = await ended;
        assert.equal(exitCode, 0, `${file} ${args.join(" ")}: ${stdout}${stderr}`);
        printed = stdout + stderr;
      }
      await consenting;
      assert.match(printed, prints);
    });

  it("mcp-remote: discovery, registration, consent and a call", async (t) => {
    const { within, missing } = await install("mcp-remote@0.15.1");
    if (missing !== undefined) return t.skip(missing);
    const client = new Client({ name: "starts programs", version: "1" });
    const consenting = consent(within.cwd);
    const transport = new StdioClientTransport({ ...within, command: "mcp-remote", args: [url], stderr: "ignore" });
    await client.connect(transport, { timeout: guardMs });
    await consenting;
    const { content } = await client.callTool({ name: "projects", arguments: { action: "get", slug: "demo" } });
    assert.match(JSON.stringify(content), /demo/);
    await client.close();
  });
});
