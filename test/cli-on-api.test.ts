import assert from "node:assert/strict";
import { after, test } from "node:test";
import { cliUser, type CliUser } from "./support/cli.ts";
import { sharedApi, testOrganization } from "./support/test-platform.ts";

const api = await sharedApi();

const organization = await testOrganization(api.database.db, "acme");
const owner = await cliUser({ url: api.baseUrl, token: organization.owner });
const member = await cliUser({ url: api.baseUrl, token: organization.member });

after(async () => {
  await owner[Symbol.asyncDispose]();
  await member[Symbol.asyncDispose]();
});

async function json(user: CliUser, args: string[]): Promise<unknown> {
  const { exitCode, stdout, stderr } = await user.berth([...args, "--json"]);
  assert.equal(exitCode, 0, stderr);
  return JSON.parse(stdout);
}

test("the CLI shows the API's state through a project's whole life", async () => {
  const created = (await json(owner, ["create", "demo", "--name", "Demo"])) as { slug: string };
  assert.equal(created.slug, "demo");
  assert.equal((await owner.berth(["create", "demo"])).exitCode, 5);
  assert.equal((await member.berth(["projects", "settings", "demo", "--port", "3000"])).exitCode, 1);
  const settings = (await json(owner, [
    "projects",
    "settings",
    "demo",
    "--port",
    "3000",
    "--health-path",
    "/healthz",
  ])) as {
    port: number;
  };
  assert.equal(settings.port, 3000);
  await json(owner, ["projects", "delete", "demo", "--yes"]);
  assert.deepEqual(await json(owner, ["projects"]), { projects: [] });
  assert.equal((await owner.berth(["env", "set", "A=1", "-p", "demo"])).exitCode, 5);
  await json(owner, ["projects", "undelete", "demo"]);
});

test("an error for a missing thing names it, with the closest name or the command that lists the existing ones", async () => {
  await json(owner, ["create", "hello"]);
  const cases: [string[], RegExp][] = [
    [["logs", "-p", "helo"], /There is no project "helo"\.\n.*Did you mean `hello`\?/],
    [["logs", "-f", "-p", "helo"], /There is no project "helo"/],
    [["cron", "runs", "nightly", "-p", "hello"], /There is no cron job "nightly"\.\n.*`berth cron`/],
    [["rollback", "9", "-p", "hello"], /roll back to deployment 9: the number does not exist.*`berth deployments`/s],
    [["db", "-p", "hello"], /no database yet\.\n.*`berth db create`/],
  ];
  for (const [args, expected] of cases) assert.match((await owner.berth(args)).stderr, expected);
  await json(owner, ["projects", "delete", "hello", "--yes"]);
  assert.match((await owner.berth(["create", "hello"])).stderr, /`berth projects undelete hello`/);
  const { stderr } = await owner.berth(["projects"], { env: { BERTH_TOKEN: "berth_m_wrong" } });
  assert.ok(stderr.includes("BERTH_TOKEN") && !stderr.includes("Bearer"), stderr);
});

test("variables set by the CLI are listed masked, and removed again", async () => {
  await json(owner, ["create", "vars"]);
  const set = await owner.berth(["env", "set", "GREETING=planted-value", "-p", "vars"]);
  assert.equal(set.exitCode, 0, set.stderr);
  const { stdout } = await owner.berth(["env", "-p", "vars"]);
  assert.match(stdout, /GREETING +•+ +you/);
  assert.ok(!stdout.includes("planted-value"));
  assert.equal((await owner.berth(["env", "unset", "GREETING", "-p", "vars", "--yes"])).exitCode, 0);
});

test("a token made by the CLI logs in, and a revoked one does not", async () => {
  const made = await owner.berth(["tokens", "create", "ci", "--scope", "projects:read"]);
  const token = made.stdout.trim();
  assert.match(token, /^berth_m_[0-9A-Za-z]{49}$/);
  const asCi = { BERTH_TOKEN: token };
  assert.equal((await owner.berth(["projects"], { env: asCi })).exitCode, 0);
  assert.equal((await owner.berth(["keys"], { env: asCi })).exitCode, 1);
  assert.equal((await owner.berth(["tokens", "revoke", "ci", "--yes"])).exitCode, 0);
  assert.equal((await owner.berth(["projects"], { env: asCi })).exitCode, 3);
});

test("a token made for projects reaches these alone, and the list names them", async () => {
  for (const slug of ["within", "within-2", "beyond"]) await json(owner, ["create", slug]);
  const made = await owner.berth(["tokens", "create", "narrow", "--project", "within,within-2"]);
  assert.match(made.stderr, /for the projects within, within-2, valid until/);
  const env = { BERTH_TOKEN: made.stdout.trim() };
  const { stdout } = await owner.berth(["projects"], { env });
  assert.deepEqual(
    ["within", "within-2", "beyond"].map((slug) => new RegExp(`^${slug} `, "m").test(stdout)),
    [true, true, false],
  );
  assert.equal((await owner.berth(["env", "-p", "within"], { env })).exitCode, 0);
  assert.equal((await owner.berth(["env", "-p", "beyond"], { env })).exitCode, 4);
  const refused = await owner.berth(["create", "another"], { env });
  assert.match(refused.stderr, /limited to projects[\s\S]*not limited to projects/);
  assert.match((await owner.berth(["tokens"])).stdout, /narrow +token +member +within, within-2/);
});

test("the CLI invites a person, changes what they reach, and removes them by name", async () => {
  await json(owner, ["create", "shop"]);
  const invited = await owner.berth(["members", "invite", "-p", "shop", "--email", "ada@example.com"]);
  assert.match(invited.stdout, /^http:\/\/berth\.test\/join#[\w-]{43}\n$/);
  assert.match((await owner.berth(["members", "invitations"])).stdout, /ada@example\.com +member +shop/);
  assert.equal((await owner.berth(["members", "revoke", "ada@example.com", "--yes"])).exitCode, 0);
  assert.match((await owner.berth(["members", "invitations"])).stdout, /no open invitation/);
  const [{ url }] = [(await json(owner, ["members", "invite"])) as { url: string }];
  const body = JSON.stringify({ code: new URL(url).hash.slice(1), name: "Ada" });
  const headers = { "content-type": "application/json", origin: "http://berth.test", "x-berth-dashboard": "1" };
  assert.equal((await fetch(`${api.baseUrl}/session/join`, { method: "POST", headers, body })).status, 200);
  assert.match(
    (await owner.berth(["members", "set", "Ada", "-p", "shop"])).stdout,
    /Ada is now: member, projects: shop/,
  );
  assert.match((await owner.berth(["members", "set", "Ada", "--role", "owner"])).stdout, /owner, projects: all/);
  assert.equal((await owner.berth(["members", "set", "Ada"])).exitCode, 2);
  assert.match((await owner.berth(["members"])).stdout, /Ada +owner +all/);
  assert.match((await owner.berth(["members", "remove", "Ada", "--yes"])).stderr, /Removed Ada\./);
  assert.match((await owner.berth(["members"])).stdout, /`berth members invite`/);
});

test("a person leaves by the CLI that they logged in, and a token of nobody's does not", async () => {
  const { url } = (await json(owner, ["members", "invite"])) as { url: string };
  const body = JSON.stringify({ code: new URL(url).hash.slice(1), name: "Eve" });
  const headers = { "content-type": "application/json", origin: "http://berth.test", "x-berth-dashboard": "1" };
  const joined = await fetch(`${api.baseUrl}/session/join`, { method: "POST", headers, body });
  const { token } = (await joined.json()) as { token: string };
  await using eve = await cliUser({ url: api.baseUrl, token });
  assert.equal((await eve.berth(["members", "leave"])).exitCode, 2, "nobody can be asked");
  const left = await eve.berth(["members", "leave", "--yes"]);
  assert.match(left.stderr, /^You left acme\./);
  assert.match((await owner.berth(["members"])).stdout, /`berth members invite`/);
  assert.match((await owner.berth(["members", "leave", "--yes"])).stderr, /This token is no person's/);
});

test("the CLI can show every list and every single resource of the API", async () => {
  await json(owner, ["create", "shown"]);
  for (const args of [
    ["whoami"],
    ["capabilities"],
    ["projects"],
    ["deployments"],
    ["builds"],
    ["env"],
    ["logs"],
    ["keys"],
    ["tokens"],
  ]) {
    const { exitCode, stderr } = await owner.berth([...args, "-p", "shown"]);
    assert.equal(exitCode, 0, `${args.join(" ")}: ${stderr}`);
  }
  const missing: [string[], number][] = [
    [["projects", "show", "missing"], 4],
    [["builds", "log", "-p", "shown"], 4],
    [["rollback", "-p", "shown"], 5],
    [["deploy", "-p", "shown"], 5],
    [["db", "-p", "shown"], 4],
    [["scale", "2", "-p", "shown"], 1],
  ];
  for (const [args, expected] of missing) {
    const { exitCode, stderr } = await owner.berth(args);
    assert.equal(exitCode, expected, `${args.join(" ")}: ${stderr}`);
  }
});
