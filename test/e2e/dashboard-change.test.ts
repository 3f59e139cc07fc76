import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Answer, Client } from "../../src/contract/client.ts";
import { eventually } from "../support/eventually.ts";
import { looksRight, screens } from "./dashboard-page.ts";
import { countedClicks } from "./dashboard-clicks.ts";
import { uploadsFiles } from "./dashboard-storage.ts";
import {
  at,
  context,
  faults,
  heading,
  openPage,
  page,
  platform,
  press,
  remote,
  skip,
  visitorWith,
} from "./dashboard-stage.ts";
import { clientOf, untilServing, upload } from "./dashboard-upload.ts";

// Drawn with other journey files: it starts a whole platform and a browser, which takes too long for every run.

// Changes in the dashboard: rows, hostnames, variables, backups, and the deletion of a project.
const params = { slug: "store" };
const files = {
  "package.json": JSON.stringify({
    name: "store",
    private: true,
    scripts: { start: "node server.js" },
    dependencies: { pg: "8.23.1" },
  }),
  "server.js": `require("node:http").createServer((request, response) => response.end("one")).listen(process.env.PORT, process.env.HOST);`,
  Procfile: "web: node server.js\nrelease: node migrate.js\n",
  "migrate.js": `
const { Client } = require("pg");
(async () => {
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  await client.query("create table items (id int primary key, name text not null, note text, detail jsonb, sold boolean)");
  await client.query("insert into items select n, 'Item ' || n, case when n % 2 = 0 then '' end, jsonb_build_object('sku', 'A-' || n), n % 2 = 0 from generate_series(1, 250) n");
  await client.end();
})();`,
};
// Answers from its database.
const asking = `
const client = new (require("pg").Client)({ connectionString: process.env.DATABASE_URL });
client.connect().then(() => require("node:http").createServer(async (request, response) => {
  const { rows } = await client.query("select 41 + 1 as answer");
  response.end("answer " + rows[0].answer);
}).listen(process.env.PORT, process.env.HOST));
`;
let client: Client;
const dialog = () => page.getByRole("dialog");
const editor = () => page.getByRole("group", { name: /^Change / });
const cell = (row: number, column: number) =>
  page.getByRole("table", { name: "Rows of items" }).getByRole("row").nth(row).getByRole("cell").nth(column);

test("a token signs in, and a project with a database serves", { skip }, async () => {
  client = clientOf(platform);
  await client.call("projects.create", { body: { slug: "store", name: "Store" } });
  await client.call("database.create", { params, body: {} });
  await client.call("env.set", { params: { ...params, key: "FIRST" }, body: { value: "1" } });
  await untilServing(client, await upload(client, "store", files));
  await page.goto(at("/"));
  await page.getByLabel("API token").fill(platform.token);
  await press("Sign in");
  await heading("Overview").waitFor();
});

test("rows of a table are sorted, searched and paged, and the URL keeps that state", { skip }, async () => {
  await page.goto(at("/projects/store/database/public/items"));
  await page.getByText("1 – 100 of 250").waitFor();
  await press("Next page");
  await page.getByText("101 – 200 of 250").waitFor();
  await page.waitForURL(/\?offset=100$/);
  await press("Next page");
  await page.getByText("201 – 250 of 250").waitFor();
  assert.ok(await page.getByRole("button", { name: "Next page" }).isDisabled());
  await press("Previous page");
  const byId = page.getByRole("columnheader", { name: /^Primary key id/ }).getByRole("button");
  await byId.click();
  await page.locator("th[aria-sort=ascending]").waitFor();
  await byId.click();
  await page.locator("th[aria-sort=descending]").waitFor();
  await page.waitForURL(/sort=id&dir=desc/);
  await cell(1, 1).getByText("250", { exact: true }).waitFor();
  await page.getByLabel("Search the rows").fill("Item 24");
  await page.getByLabel("Search the rows").press("Enter");
  await page.getByText("1 – 11 of 11").waitFor();
  await page.reload();
  await cell(1, 2).getByText("Item 249", { exact: true }).waitFor();
  await page.getByLabel("Search the rows").fill("nothing like it");
  await page.getByLabel("Search the rows").press("Enter");
  await page.getByText("No row holds this text.").waitFor();
});

test(
  "cells distinguish null, an empty text, JSON and booleans, and the keyboard moves between them",
  { skip },
  async () => {
    await page.goto(at("/projects/store/database/public/items?sort=id"));
    await cell(1, 3).getByText("null", { exact: true }).waitFor();
    await cell(2, 3).getByText("''", { exact: true }).waitFor();
    await cell(1, 4).getByText('{"sku":"A-1"}').waitFor();
    await cell(1, 5).getByText("false", { exact: true }).waitFor();
    await cell(1, 3).getByRole("button").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await dialog().getByRole("heading", { name: "detail" }).waitFor();
    await dialog().getByText("jsonb").waitFor();
    assert.equal(await dialog().locator("pre").innerText(), '{\n  "sku": "A-2"\n}');
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
    await cell(2, 4).locator("button:focus").waitFor();
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Enter");
    assert.ok(await editor().getByRole("checkbox", { name: "null" }).isChecked());
    await page.keyboard.press("Escape");
    await cell(1, 3).locator("button:focus").waitFor();
  },
);

test("a cell is changed in place, and the errors of its type stand there", { skip }, async () => {
  await page.goto(at("/projects/store/database/public/items?sort=id"));
  await faults.during([/^400 .*\/items\/rows$/], async () => {
    await cell(1, 1).getByRole("button").click();
    await editor().getByLabel("id").fill("one");
    await page.keyboard.press("Enter");
    await editor().getByText("is not a value of the type integer").waitFor();
    await looksRight(page);
    await page.keyboard.press("Escape");
  });
  await page.setViewportSize(screens.phone);
  await cell(1, 3).getByRole("button").click();
  await editor().getByRole("checkbox", { name: "null" }).uncheck();
  await editor().getByLabel("note").fill("noted");
  await looksRight(page);
  await editor().getByRole("button", { name: "Save" }).click();
  await cell(1, 3).getByText("noted", { exact: true }).waitFor();
  await page.setViewportSize(screens.usual);
  await cell(1, 4).getByRole("button").click();
  await press("Change");
  await dialog().getByLabel("detail").fill('{"sku": "B-1"}');
  await press("Save");
  await cell(1, 4).getByText('{"sku":"B-1"}').waitFor();
});

test("a cell whose row changed meanwhile is not overwritten", { skip }, async () => {
  await cell(1, 2).getByRole("button").click();
  await editor().getByLabel("name").fill("Too late");
  const rows = { ...params, schema: "public", table: "items" };
  await client.call("data.update", { params: rows, body: { key: { id: 1 }, values: { note: null } } });
  await faults.during([/^409 .*\/items\/rows$/], async () => {
    await editor().getByRole("button", { name: "Save" }).click();
    await editor()
      .getByText(/has changed since it was read/)
      .waitFor();
    await page.keyboard.press("Escape");
  });
  const found = await client.call("data.rows", { params: rows, query: { sort: "id", limit: 1 } });
  assert.deepEqual(found.rows, [{ id: 1, name: "Item 1", note: null, detail: { sku: "B-1" }, sold: false }]);
});

test("a row is inserted with typed fields, and deleted after its key is typed", { skip }, async () => {
  await press("Insert a row");
  await dialog().getByLabel("id").fill("1000");
  await dialog().getByLabel("name").fill("Last");
  await dialog().getByLabel("detail").fill('{"sku": ["A", null]}');
  await dialog().getByLabel("sold").selectOption("true");
  await dialog().getByRole("checkbox", { name: "null" }).first().check();
  await looksRight(page);
  await press("Insert");
  await dialog().waitFor({ state: "detached" });
  await page.goto(at("/projects/store/database/public/items?sort=id&dir=desc"));
  await cell(1, 4).getByText('{"sku":["A",null]}').waitFor();
  const { rows } = await client.call("data.rows", {
    params: { ...params, schema: "public", table: "items" },
    query: { q: "Last" },
  });
  assert.deepEqual(rows, [{ id: 1000, name: "Last", note: null, detail: { sku: ["A", null] }, sold: true }]);
  await press("Delete row 1");
  const submit = dialog().getByRole("button", { name: /^Delete/ });
  await dialog().getByLabel("Type 1000 to confirm").fill("100");
  await submit.and(page.locator("[aria-disabled=true]")).waitFor();
  await submit.press("Enter");
  await dialog().getByLabel("Type 1000 to confirm").fill("1000");
  await submit.and(page.locator(":not([aria-disabled])")).click();
  await dialog().waitFor({ state: "detached" });
  await cell(1, 1).getByText("250", { exact: true }).waitFor();
});

test("a variable shows the first deployment that uses its value", { skip }, async () => {
  await page.goto(at("/projects/store/variables"));
  const row = page.getByRole("row", { name: /^FIRST/ });
  await row.getByRole("cell", { name: "#1", exact: true }).waitFor();
  await client.call("env.set", { params: { ...params, key: "SECOND" }, body: { value: "2" } });
  await page
    .getByRole("row", { name: /^SECOND/ })
    .getByRole("cell", { name: "#2", exact: true })
    .waitFor();
});

type Domain = Answer<"domains.list">["domains"][number];
const seen = (second: number) => `2026-11-23T09:00:0${second}.000Z`;
const steps = (...details: string[]): Domain["ssl_steps"] =>
  details.map((detail, index) => ({ at: seen(index), status: index === 3 ? "active" : "issuing", detail }));
const issued = ["Requested", "Reached over HTTP", "Ordered", "Issued until 21 February 2027"];

/** The states of a hostname on a public platform, each with the marks and texts that its card shows. */
const ladder: readonly (readonly [Partial<Domain>, readonly string[], readonly string[]])[] = [
  [
    { dns_status: "mismatch", dns_detail: "A leads to 198.51.100.9, should be 203.0.113.7." },
    ["DNS record (needs a change)", "Certificate (later)", "Serving (later)"],
    ["A leads to 198.51.100.9, should be 203.0.113.7.", "Not served yet", "Create the A record"],
  ],
  [
    { dns_status: "ok", serving: true, ssl_status: "issuing", ssl_steps: steps(...issued.slice(0, 2)) },
    ["DNS record (done)", "Certificate (waiting)", "Serving (done)"],
    ["Reached over HTTP", "so far"],
  ],
  [
    {
      dns_status: "ok",
      serving: true,
      ssl_status: "failed",
      ssl_detail: "The authority could not reach the name: connection refused.",
      ssl_steps: [...steps("Requested"), { at: seen(4), status: "failed", detail: "Connection refused" }],
      ssl_next_attempt_at: new Date(Date.now() + 3_600_000).toISOString(),
    },
    ["DNS record (done)", "Certificate (needs a change)"],
    ["The authority could not reach the name: connection refused.", "Connection refused", "Next attempt"],
  ],
  [
    { dns_status: "ok", serving: true, ssl_status: "active", ssl_steps: steps(...issued) },
    ["DNS record (done)", "Certificate (done)", "Serving (done)"],
    ["Requests for this name reach the project.", "Issued until 21 February 2027"],
  ],
];

test("a hostname's card shows each step: record, probe, order, certificate, serving", { skip }, async () => {
  await client.call("domains.attach", { params, body: { hostname: "wares.example.com" } });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  let shown: Partial<Domain> = {};
  const route = /\/v1\/projects\/store\/domains$/;
  await page.route(route, async (each) => {
    const { domains } = (await (await each.fetch()).json()) as Answer<"domains.list">;
    return each.fulfill({ json: { domains: domains.map((domain) => ({ ...domain, ...shown })) } });
  });
  for (const [index, [state, marks, texts]] of ladder.entries()) {
    shown = state;
    await page.goto(at("/projects/store/domains"));
    const card = page.getByRole("listitem").filter({ hasText: "wares.example.com" }).first();
    for (const mark of marks) await card.getByText(mark).waitFor();
    for (const text of texts) await card.getByText(text).first().waitFor();
    if (index === 0) {
      await card.getByRole("button", { name: "Copy the value of the A record" }).click();
      assert.equal(await page.evaluate("navigator.clipboard.readText()"), "203.0.113.7");
    } else assert.equal(await card.getByRole("button", { name: /^Copy the value/ }).count(), 0);
    await looksRight(page);
  }
  await page.unrouteAll({ behavior: "wait" });
  await page.goto(at("/projects/store/domains"));
  await press("Detach wares.example.com");
  await page.getByLabel("Type wares.example.com to confirm").fill("wares.example.com");
  await dialog().getByRole("button", { name: "Detach" }).click();
  await page.getByText("No hostname of your own yet").waitFor();
});

test("a backup shows its progress, and the rows that its verification counted", { skip }, async () => {
  const { id } = await client.call("backups.create", { params, body: {} });
  const get = () => client.call("backups.get", { params: { id } });
  await eventually(
    async () => (await get()).status === "completed" && (await get()).operation === null,
    "the backup is completed",
  );
  await client.call("backups.verify", { params: { id } });
  await eventually(
    async () => (await get()).verification !== null && (await get()).operation === null,
    "the backup is verified",
  );
  const operation = { kind: "verify", phase: "restoring", bytes_done: 1, tables_done: 3, tables_total: 12 };
  await page.route(/\/v1\/backups\/bak_[a-z0-9]+$/, async (each) => {
    const backup = (await (await each.fetch()).json()) as object;
    await each.fulfill({ json: { ...backup, operation } });
  });
  await page.goto(at(`/projects/store/backups/${id}`));
  await page.getByRole("status").getByText("Restoring 3/12").waitFor();
  // The page polls the backup.
  await page.unrouteAll({ behavior: "wait" });
  await page.getByRole("status").getByText("Completed").waitFor();
  const items = page.getByRole("row", { name: /public\.items/ }).getByRole("cell");
  assert.deepEqual(await items.allInnerTexts(), ["public.items", "250", "250"]);
});

test("a terminal runs a shell, follows the size of the window, and shows its exit code", { skip }, async () => {
  await page.goto(at("/projects/store/terminal"));
  await press("Start");
  const screen = page.locator(".xterm-rows");
  const shows = (text: RegExp) => screen.getByText(text).first().waitFor();
  await shows(/[$#]/);
  await page.keyboard.type("echo $((6*7)); trap 'echo stopped' INT\n");
  await shows(/^42\s*$/);
  await page.keyboard.press("Control+c");
  await shows(/^stopped/);
  const columns = async () => {
    await page.keyboard.type("clear; echo =$(stty size | cut -d' ' -f2)=\n");
    await shows(/^=\d+=/);
    return Number(/=(\d+)=/.exec(await screen.innerText())?.[1]);
  };
  const wide = await columns();
  await page.keyboard.type("printf '\\033[38;2;200;90;20mcoloured\\n'\n");
  await screen.locator("span[style*=color]").first().waitFor();
  await looksRight(page);
  await page.setViewportSize(screens.phone);
  await eventually(async () => (await columns()) < wide / 2, "the command knows the smaller screen");
  await page.setViewportSize(screens.usual);
  await page.keyboard.press("Control+m");
  await page.keyboard.type("exit 9\n");
  await page.getByRole("textbox", { name: "Terminal input" }).focus();
  await page.keyboard.type("exit 7\n");
  await page.getByRole("status").getByText("The command ended with exit code 7.").waitFor();
  const { token } = await client.call("tokens.create", {
    body: { name: "reader", role: "member", scopes: ["projects:read", "deployments:read", "activity:read"] },
  });
  const visitor = await visitorWith(token ?? "");
  await visitor.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await visitor.goto(at("/projects/store/terminal"));
  const start = visitor.getByRole("button", { name: "Start" }).and(visitor.locator("[aria-disabled=true]"));
  await start.getByText("Your token lacks the scope deployments:write").waitFor();
  await visitor.context().close();
});

test("the files that an application keeps are listed, downloaded and uploaded", { skip }, async () => {
  const command = 'mkdir -p "$STORAGE_DIR/papers" && head -c 1500000 /dev/zero > "$STORAGE_DIR/papers/large"';
  const { run } = await client.call("runs.create", { params, body: { command } });
  assert.equal(run.exit_code, 0);
  await page.goto(at("/projects/store/storage"));
  await page.getByRole("link", { name: "papers" }).click();
  const arrival = page.waitForEvent("download");
  await press("Download large");
  assert.equal((await readFile(await (await arrival).path())).length, 1_500_000);
  await looksRight(page);
});

test("a snapshot is looked into, and a file of it put back; what it replaces is kept", { skip }, async () => {
  const { id } = await client.call("backups.create", { params, body: { content: "files" } });
  const get = () => client.call("backups.get", { params: { id } });
  await eventually(async () => ((await get()).status === "completed" ? true : undefined), "the files are backed up");
  const command = 'echo new > "$STORAGE_DIR/papers/large"';
  assert.equal((await client.call("runs.create", { params, body: { command } })).run.exit_code, 0);
  await page.goto(at("/projects/store/backups"));
  await page.getByRole("link", { name: "Look inside" }).first().click();
  await page.getByRole("link", { name: "papers" }).click();
  assert.equal(new URL(page.url()).search, `?path=papers&backup=${id}`);
  await page.getByText("1.4 MiB").waitFor();
  await looksRight(page);
  const arrival = page.waitForEvent("download");
  await press("Download large");
  assert.equal((await readFile(await (await arrival).path())).length, 1_500_000);
  await press("Restore large");
  const dialog = page.getByRole("dialog");
  await faults.during([/^409 /], async () => {
    await dialog.getByRole("button", { name: "Restore", exact: true }).click();
    await dialog.getByText(/papers\/large is there, a file of 4 B/).waitFor();
  });
  await looksRight(page);
  await dialog.getByRole("checkbox").check();
  await dialog.getByRole("button", { name: "Restore", exact: true }).click();
  await dialog.getByText("What was there is in").waitFor();
  await looksRight(page);
  await dialog.getByRole("link", { name: /_replaced$/ }).click();
  await page.getByRole("link", { name: "papers" }).click();
  await press("Restore large");
  await dialog.getByRole("checkbox").check();
  await dialog.getByRole("button", { name: "Restore", exact: true }).click();
  await dialog.getByText("What was there is in").waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  const { files } = await client.call("disk.files", { params, query: { path: "papers" } });
  assert.deepEqual(
    files.map(({ size_bytes }) => size_bytes),
    [4],
  );
  await page.getByLabel("Files as of").selectOption(id);
  await page.getByRole("link", { name: "papers" }).waitFor();
  await page.goto(at("/projects/store/storage?path=papers"));
  await press("Delete large");
  await dialog.getByLabel("Type large to confirm").fill("large");
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("No files here").waitFor();
  await uploadsFiles(client);
});

test("who has no terminal gets from sign-in to a live template in an empty organization", { skip }, async () => {
  const { owner_token: token } = await client.call("orgs.create", { body: { slug: "slip", name: "Slip" } });
  const visitor = await visitorWith(token ?? "");
  await visitor.getByRole("button", { name: "Template or repository" }).click();
  await visitor.getByRole("textbox", { name: "Slug" }).fill("begun");
  await visitor.getByLabel("Begin with").selectOption("static");
  await visitor.getByRole("button", { name: "Create", exact: true }).click();
  await visitor.getByRole("heading", { level: 1, name: "Deployment #1" }).waitFor();
  await visitor.getByRole("main").getByText("Live", { exact: true }).first().waitFor();
  await visitor.context().close();
});

// The limits are for people who have no terminal.
const mostClicks = 12;
const mostMs = 90_000;

test(
  "who has no terminal gets from sign-in to a live application with a database from a git address in 12 clicks and 90 seconds",
  { skip },
  async () => {
    await remote.push(files["package.json"], { file: "package.json" });
    await remote.push(asking, { file: "server.js" });
    await remote.push("DATABASE_URL=\n", { file: ".env.example" });
    const { owner_token: token } = await client.call("orgs.create", { body: { slug: "pier", name: "Pier" } });
    const visitor = await openPage();
    await visitor.goto(at("/"));
    const person = countedClicks();
    const began = performance.now();
    const button = (name: string) => visitor.getByRole("button", { name, exact: true });
    await person.fill(visitor.getByLabel("API token"), token ?? "");
    await person.click(button("Sign in"));
    await person.click(button("Template or repository"));
    await person.select(visitor.getByLabel("Begin with"), "repository");
    await person.fill(visitor.getByRole("textbox", { name: "Repository" }), remote.url);
    const suggested = (/([^/]+?)(?:\.git)?$/.exec(remote.url)?.[1] ?? "").toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
    assert.equal(await visitor.getByRole("textbox", { name: "Slug" }).inputValue(), suggested);
    await person.fill(visitor.getByRole("textbox", { name: "Slug" }), "asks");
    await looksRight(visitor);
    await person.click(button("Create"));
    await person.click(button("Done"));
    await visitor.getByRole("heading", { name: /^Plan for main at / }).waitFor();
    assert.ok(await visitor.getByLabel(/^With a PostgreSQL database/).isChecked(), ".env.example names one");
    await looksRight(visitor);
    await person.click(button("Deploy"));
    await visitor.getByRole("heading", { level: 1, name: /^(?:Build 1|Deployment #1)$/ }).waitFor();
    await visitor.getByRole("list", { name: "Stages" }).waitFor();
    await visitor.getByRole("main").getByText("Live", { exact: true }).first().waitFor();
    const address = (await visitor.getByRole("link", { name: "Visit" }).getAttribute("href")) ?? "";
    const { status, body } = await platform.visit(new URL(address).hostname.replace(/\.localhost$/, ""));
    assert.deepEqual([status, body], [200, "answer 42"]);
    assert.ok(person.count <= mostClicks, `${person.count} clicks`);
    const tookMs = performance.now() - began;
    assert.ok(tookMs <= mostMs, `${Math.round(tookMs / 1000)} s`);
    await visitor.context().close();
  },
);

test("a followed repository that cannot be fetched says why, and where to give access", { skip }, async () => {
  await page.goto(at("/"));
  await press("New project");
  await page.getByRole("textbox", { name: "Slug" }).fill("absent");
  await page.getByLabel("Begin with").selectOption("repository");
  // The .invalid domain never resolves.
  await page.getByRole("textbox", { name: "Repository" }).fill("https://git.invalid/acme/shop.git");
  await press("Create");
  await press("Done");
  await page.getByRole("heading", { name: "The first commit could not be fetched" }).waitFor();
  await page.getByRole("button", { name: "Fetch now" }).waitFor();
  await looksRight(page);
  await page.getByRole("link", { name: "Access and deploy key" }).click();
  await heading("Settings").waitFor();
});

test("a folder dropped where there is no project shows its plan, and what it lacks", { skip }, async () => {
  const { owner_token: token } = await client.call("orgs.create", { body: { slug: "quay", name: "Quay" } });
  const visitor = await visitorWith(token ?? "");
  const parent = await mkdtemp(join(tmpdir(), "berth-drop-"));
  const folder = join(parent, "Our Papers");
  await mkdir(folder);
  const files = {
    "package.json": JSON.stringify({ name: "papers", scripts: { start: "node server.js" } }),
    "server.js": `require("node:http").createServer((_, response) => response.end([process.env.API_KEY, new URL(process.env.DATABASE_URL).protocol].join(" "))).listen(process.env.PORT);`,
    "berth.json": JSON.stringify({ health_path: "no slash" }),
    ".env.example": "DATABASE_URL=\nAPI_KEY=\nPORT=\n",
  };
  for (const [path, text] of Object.entries(files)) await writeFile(join(folder, path), text);
  const zone = visitor.getByText("Drop a folder here to deploy it");
  await zone.waitFor();
  const devtools = await visitor.context().newCDPSession(visitor);
  const drop = async (path: string, place?: { x: number; y: number; width: number; height: number }) => {
    const { x, y, width, height } = place ?? (await zone.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    // 1 allows copying only, as file managers do.
    const data = { items: [], files: [path], dragOperationsMask: 1 };
    for (const type of ["dragEnter", "dragOver", "drop"] as const)
      await devtools.send("Input.dispatchDragEvent", { type, x: x + width / 2, y: y + height / 2, data });
  };
  // Drop beside the zone, where a browser opens the item by default, then drop a file instead of a folder.
  await drop(folder, { x: 5, y: 5, width: 0, height: 0 });
  await drop(join(folder, "server.js"));
  await visitor.getByRole("alert").getByText("This is not a folder with files.").waitFor();
  await drop(folder);
  await visitor.getByRole("heading", { name: "Plan for Our Papers" }).waitFor();
  await visitor
    .getByRole("region", { name: "Failure" })
    .getByText(/berth\.json/)
    .first()
    .waitFor();
  const deploy = visitor.getByRole("button", { name: "Deploy", exact: true });
  assert.equal(await deploy.count(), 0);
  await writeFile(join(folder, "berth.json"), JSON.stringify({ health_path: "/" }));
  await visitor.getByRole("button", { name: "Choose another folder" }).click();
  await drop(folder);
  await visitor.getByText("web: node server.js").or(visitor.getByText("web: npm start")).waitFor();
  await visitor.getByText("names DATABASE_URL, API_KEY, and nothing sets them").waitFor();
  await looksRight(visitor);
  assert.ok(await visitor.getByLabel("With a PostgreSQL database").isChecked());
  await visitor.getByLabel("API_KEY").fill("k-17");
  await deploy.click();
  await visitor.getByRole("heading", { level: 1, name: "Deployment #1" }).waitFor();
  await visitor.getByRole("main").getByText("Live", { exact: true }).first().waitFor();
  const address = (await visitor.getByRole("link", { name: "Visit" }).getAttribute("href")) ?? "";
  const { body } = await platform.visit(new URL(address).hostname.replace(/\.localhost$/, ""));
  assert.match(body, /^k-17 postgres/);
  await visitor.context().close();
  await rm(parent, { recursive: true });
});

test("each part of the settings has an address, and saves its own fields", { skip }, async () => {
  await page.goto(at("/projects/store/settings"));
  const parts = page.getByRole("navigation", { name: "Parts of the settings" });
  await parts.getByRole("link", { name: "Network" }).click();
  await page.waitForURL(/settings#network$/);
  const isAt = (id: string) => `document.getElementById("${id}").getBoundingClientRect().top < innerHeight - 100`;
  await eventually(() => page.evaluate(isAt("network")), "the part is in sight");
  await page.getByLabel("Sleeps after").fill("30");
  await page.locator("#network").getByRole("button", { name: "Save" }).click();
  await page.locator("#network").getByText("Saved.").waitFor();
  const { sleep_after_minutes: sleep, health_path: health } = await client.call("projects.get", { params });
  assert.deepEqual([sleep, health], [30, null]);
  await client.call("projects.settings", { params, body: { sleep_after_minutes: null } });
  await page.goto(at("/activity"));
  await page.getByText("Settings changed: sleeps after never → 30 min").waitFor();
  await page.goto(at("/projects/store/settings#agents"));
  await page.getByLabel("Tokens in approval mode deploy to").waitFor();
  await eventually(() => page.evaluate(isAt("agents")), "the part that the address names is in sight");
  await looksRight(page);
  await page.setViewportSize(screens.phone);
  await looksRight(page);
  await page.setViewportSize(screens.usual);
});

test(
  "deleting a project shows what it affects, waits for an approval, and can be repeated once approved",
  { skip },
  async () => {
    const agent = { name: "agent", role: "owner", approval_mode: true } as const;
    const { token } = await client.call("tokens.create", { body: agent });
    const visitor = await visitorWith(token ?? "");
    await visitor.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await visitor.goto(at("/projects/store/settings"));
    const refused: string[] = [];
    visitor.on("response", (answer) => {
      if (answer.status() === 409 && answer.url().includes("dry_run")) refused.push(answer.url());
    });
    await visitor.getByRole("button", { name: "Delete", exact: true }).click();
    const asking = visitor.getByRole("dialog");
    await asking.getByText(/^about \d+ rows in 1 table, /).waitFor();
    await asking.getByText("none of its own").waitFor();
    await asking.getByText("Your token is in approval mode: a person is asked first.").waitFor();
    const submit = asking.getByRole("button", { name: /^Delete/ });
    await submit.and(visitor.locator("[aria-disabled=true]")).waitFor();
    await asking.getByLabel("Type store to confirm").fill("store");
    // Expected: the 403 of the deletion that needs an approval, and reads that the page sends before it sees that the project is deleted.
    await faults.during([/^(?:403|409) \/v1\/projects\/store/], async () => {
      await submit.click();
      const decision = asking.getByRole("status").filter({ hasText: "A person decides." });
      await decision.getByText("Waiting").waitFor();
      await asking.getByText(/^berth approvals apr_/).waitFor();
      await looksRight(visitor);
      await page.goto(at("/approvals"));
      await page.getByRole("link", { name: "Review: Delete the project store" }).click();
      await press("Approve");
      await page.getByRole("heading", { name: "Approved" }).waitFor();
      await asking.getByRole("status").getByText("Approved").waitFor();
      await submit.click();
      await asking.waitFor({ state: "detached" });
      await visitor.getByRole("button", { name: "Undelete" }).waitFor();
      assert.deepEqual(refused, [], "the page sends no dry run for the deleted project");
    });
    await visitor.context().close();
    await page.setViewportSize(screens.phone);
    await page.goto(at("/projects/store/settings"));
    await press("Undelete");
    await page.getByRole("button", { name: "Undelete" }).waitFor({ state: "detached" });
    await page.setViewportSize(screens.usual);
  },
);

test("no page violated the content security policy or logged an error", { skip }, () => {
  assert.deepEqual(faults.found, []);
});
