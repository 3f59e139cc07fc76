import assert from "node:assert/strict";
import { it } from "node:test";
import { firstItems } from "./shop-app.ts";
import { eventually, type Json, type Subject } from "./subject.ts";

const item = "/v1/projects/shop/data/tables/public/item";

/** Rows about a project's data, logs and metrics. */
export function dataRows(subject: () => Subject): void {
  it("POST database provisions the database, GET reads it, a second POST changes nothing; credentials never returned", async () => {
    assert.equal((await subject().expect(404, "GET", "/v1/projects/fields/database")).body.code, "no_database");
    const made = await subject().expect(201, "POST", "/v1/projects/fields/database", { as: "member" });
    const again = await subject().expect(200, "POST", "/v1/projects/fields/database");
    assert.equal(again.body.created_at, made.body.created_at);
    assert.equal((await subject().expect(200, "GET", "/v1/projects/fields/database")).body.status, "ready");
  });

  it("GET data/tables lists tables; limit, offset, sort, dir, q", async () => {
    const names = async (query: string) =>
      (await subject().expect(200, "GET", `/v1/projects/shop/data/tables${query}`)).body.tables.map(
        ({ name }: Json) => name,
      );
    assert.deepEqual(await names("?sort=name"), ["cheap", "item", "tag"]);
    assert.deepEqual(await names("?sort=name&dir=desc&limit=1&offset=1"), ["item"]);
    assert.deepEqual(await names("?q=ite"), ["item"]);
    const { body } = await subject().expect(200, "GET", "/v1/projects/shop/data/tables");
    assert.equal(body.tables.find(({ name }: Json) => name === "cheap").kind, "view");
  });

  it("GET data/tables/:schema/:table reads rows; limit, offset, sort, dir, q; values are exact and long cells cut", async () => {
    const { body } = await subject().expect(200, "GET", `${item}?sort=id&limit=2`);
    assert.deepEqual([body.rows.length, body.total, body.primary_key], [2, firstItems, ["id"]]);
    const [row] = body.rows;
    assert.deepEqual(
      [row.price, row.big, row.doc, row.raw],
      ["0.1000000000", "9007199254740994", { a: [1, 2] }, "\\x00ff"],
    );
    assert.match(row.at, /\.678901/);
    assert.deepEqual(body.cut, [{ row: 0, columns: ["note"] }]);
    const ids = async (query: string) =>
      (await subject().expect(200, "GET", `${item}?${query}`)).body.rows.map(({ id }: Json) => Number(id));
    assert.deepEqual(await ids("sort=id&dir=desc&limit=2&offset=1"), [firstItems - 1, firstItems - 2]);
    assert.deepEqual((await ids("q=item%2011&sort=id")).slice(0, 3), [11, 110, 111]);
    assert.equal((await ids("")).length, 50);
    await subject().expect(404, "GET", "/v1/projects/shop/data/tables/public/nothing");
    await subject().expect(404, "GET", "/v1/projects/shop/data/tables/pg_catalog/pg_authid");
  });

  it("POST database/query reads with one statement, and refuses what writes", async () => {
    const path = "/v1/projects/shop/database/query";
    const { body } = await subject().expect(200, "POST", path, { as: "member", body: { sql: "select 1 + 1 as two" } });
    assert.deepEqual([body.columns[0].name, body.rows], ["two", [[2]]]);
    await subject().expect(409, "POST", path, { body: { sql: "delete from item" } });
  });

  it("GET database/connections, statements and extensions show what the server does; DELETE ends a connection, for owners only", async () => {
    const path = "/v1/projects/shop/database";
    assert.equal((await subject().visit("shop.localhost", "/connect")).body, "connected");
    const { body } = await subject().expect(200, "GET", `${path}/connections`, { as: "member" });
    assert.deepEqual([body.limit, body.more], [20, false]);
    const held = body.connections.find(({ application }: Json) => application === "held");
    assert.deepEqual([held.kind, held.state], ["application", "idle"]);
    const statements = await subject().expect(200, "GET", `${path}/statements?sort=mean`, { as: "member" });
    assert.ok(!statements.body.statements.some(({ query }: Json) => query.includes("item 11")));
    const extensions = await subject().expect(200, "GET", `${path}/extensions`, { as: "member" });
    assert.equal(extensions.body.extensions[0].name, "plpgsql");
    await subject().expect(403, "DELETE", `${path}/connections/1`, { as: "member" });
    await subject().expect(404, "DELETE", `${path}/connections/2147483646`);
    await subject().expect(204, "DELETE", `${path}/connections/${held.pid}`);
  });

  it("POST database/branches copies the database into a server of its own, readable by its name; DELETE ends it", async () => {
    const path = "/v1/projects/shop/database/branches";
    const { body } = await subject().expect(201, "POST", path, { as: "member", body: { name: "tried" } });
    assert.deepEqual([body.status, body.masked], ["ready", false]);
    assert.equal((await subject().expect(200, "GET", `${path}/tried`)).body.name, "tried");
    const read = { body: { sql: "select 1 as one", branch: "tried" } };
    assert.deepEqual((await subject().expect(200, "POST", "/v1/projects/shop/database/query", read)).body.rows, [[1]]);
    await subject().expect(204, "DELETE", `${path}/tried`);
    assert.ok(!(await subject().expect(200, "GET", path)).body.branches.some((each: Json) => each.status === "ready"));
  });

  it("POST database/sessions, dump and import open a tunnel, GET shows it; for owners only, credentials never returned", async () => {
    const asked: readonly (readonly [string, Json])[] = [
      ["sessions", {}],
      ["dump", { format: "custom" }],
      ["import", { format: "custom" }],
    ];
    for (const [what, body] of asked) {
      const path = `/v1/projects/shop/database/${what}`;
      assert.equal((await subject().expect(403, "POST", path, { as: "member", body })).body.code, "owner_only");
      const { body: tunnel, text } = await subject().expect(201, "POST", path, { body });
      assert.doesNotMatch(text, /password/);
      await subject().expect(200, "GET", `/v1/projects/shop/database/tunnels/${tunnel.id}`);
    }
  });

  it("POST rows writes a row, PATCH rows changes one, DELETE rows deletes one; for owners only", async () => {
    const values = { name: "written", price: "123456789012345678.0123456789", doc: { b: null } };
    assert.equal(
      (await subject().expect(403, "POST", `${item}/rows`, { as: "member", body: { values } })).body.code,
      "owner_only",
    );
    const { body } = await subject().expect(201, "POST", `${item}/rows`, { body: { values } });
    assert.deepEqual([body.row.name, body.row.price, body.row.doc], ["written", values.price, { b: null }]);
    const key = { id: body.row.id };
    const change = { key, values: { name: "rewritten" } };
    await subject().expect(403, "PATCH", `${item}/rows`, { as: "member", body: change });
    const changed = await subject().expect(200, "PATCH", `${item}/rows`, { body: change });
    assert.equal(changed.body.row.name, "rewritten");
    assert.equal(
      (await subject().expect(403, "DELETE", `${item}/rows`, { as: "member", body: { key } })).body.code,
      "owner_only",
    );
    await subject().expect(204, "DELETE", `${item}/rows`, { body: { key } });
    await subject().expect(404, "DELETE", `${item}/rows`, { body: { key } });
    await subject().expect(400, "DELETE", `${item}/rows`, { body: { key: { name: "item 1" } } });
    assert.equal((await subject().expect(200, "GET", `${item}?limit=1`)).body.total, firstItems);
  });

  it("POST backups answers 201 with {id, status}; GET lists the most recent", async () => {
    const { body } = await subject().expect(201, "POST", "/v1/projects/shop/backups");
    assert.deepEqual(Object.keys(body).toSorted(), ["id", "status"]);
    await completed(subject(), body.id);
    const { backups } = (await subject().expect(200, "GET", "/v1/projects/shop/backups")).body;
    assert.deepEqual([backups[0].id, backups[0].status], [body.id, "completed"]);
    assert.equal((await subject().expect(404, "POST", "/v1/projects/rows/backups")).body.code, "no_database");
  });

  it("POST backups/:id/verify restores the backup into a scratch database and compares row counts", async () => {
    const [{ id }] = (await subject().expect(200, "GET", "/v1/projects/shop/backups")).body.backups;
    const { body } = await subject().expect(200, "POST", `/v1/backups/${id}/verify`, { as: "member" });
    assert.equal(body.status, "verified");
    const counted = body.tables.find(({ table }: Json) => table === "public.item");
    assert.deepEqual(counted, { table: "public.item", expected: firstItems, actual: firstItems });
  });

  it("POST restore restores into a new database and returns its name; the live database is never modified", async () => {
    const inserted = await subject().expect(201, "POST", `${item}/rows`, {
      body: { values: { name: "after the backup" } },
    });
    const { body } = await subject().expect(201, "POST", "/v1/projects/shop/restore", { body: {} });
    const restored = await subject().expect(200, "GET", `${item}?limit=1&database=${body.database}`);
    assert.equal(restored.body.total, firstItems);
    assert.equal((await subject().expect(200, "GET", `${item}?limit=1`)).body.total, firstItems + 1);
    const named = await subject().expect(201, "POST", "/v1/projects/shop/restore", {
      body: { backup_id: body.backup_id },
    });
    assert.notEqual(named.body.database, body.database);
    await subject().expect(404, "POST", "/v1/projects/shop/restore", { body: { backup_id: "bak_nothing" } });
    await subject().expect(204, "DELETE", `${item}/rows`, { body: { key: { id: inserted.body.row.id } } });
    await subject().expect(204, "DELETE", `/v1/projects/shop/database/restored/${named.body.database}`);
  });

  it("POST restore with `at` restores a moment, GET and PATCH archive show and set which ones there are", async () => {
    const path = "/v1/projects/shop/database/archive";
    const starting = await subject().expect(200, "GET", path);
    assert.ok(["starting", "healthy"].includes(starting.body.status), starting.body.status);
    const refused = await subject().expect(409, "POST", "/v1/projects/shop/restore", { body: { at: "365d" } });
    assert.equal(refused.body.code, "target_outside_window");
    const at = new Date().toISOString();
    const isArchived = ({ windows: [window] }: Json) => window !== undefined && window.from < at;
    const later = async () => isArchived((await subject().expect(200, "GET", path)).body);
    await eventually("the database is archived", later);
    const { body } = await subject().expect(201, "POST", "/v1/projects/shop/restore", { body: { at } });
    assert.deepEqual([body.backup_id, body.shows], [null, at]);
    const restored = await subject().expect(200, "GET", `${item}?limit=1&database=${body.database}`);
    assert.equal(restored.body.total, firstItems);
    await subject().expect(204, "DELETE", `/v1/projects/shop/database/restored/${body.database}`);
    const drill = await subject().expect(201, "POST", "/v1/projects/shop/drills", { as: "member" });
    assert.equal(drill.body.status, "passed", drill.text);
    assert.ok(drill.body.evidence.tables.some(({ table }: Json) => table === "public.item"));
    const { drills } = (await subject().expect(200, "GET", "/v1/projects/shop/drills")).body;
    const shown = await subject().expect(200, "GET", `/v1/projects/shop/drills/${drills[0].id}`);
    assert.deepEqual(shown.body, drill.body);
    const off = await subject().expect(200, "PATCH", path, { body: { enabled: false } });
    assert.equal(off.body.status, "off");
    await subject().expect(200, "PATCH", path, { body: { enabled: true } });
  });

  it("A restored database can be promoted, and the previous database again", async () => {
    const { databases } = (await subject().expect(200, "GET", "/v1/projects/shop/database/restored")).body;
    const [{ database }] = databases;
    const { body } = await subject().expect(200, "POST", "/v1/projects/shop/database/promote", { body: { database } });
    assert.equal(body.database, database);
    const back = await subject().expect(200, "POST", "/v1/projects/shop/database/promote", {
      body: { database: body.previous },
    });
    assert.deepEqual([back.body.database, back.body.previous], [body.previous, database]);
  });

  it("GET requests: newest first, and by path", async () => {
    await subject().visit("shop.localhost", "/things/12345?key=hidden");
    const listed = await eventually("the request is listed", async () => {
      const { body } = await subject().expect(200, "GET", "/v1/projects/shop/requests?path=/things/");
      return body.requests.length > 0 ? body : undefined;
    });
    assert.equal(listed.requests[0].path, "/things/12345");
    const { body } = await subject().expect(200, "GET", "/v1/projects/shop/requests/paths?path=/things/:id");
    assert.deepEqual(
      body.paths.map(({ method, path }: { method: string; path: string }) => [method, path]),
      [["GET", "/things/:id"]],
    );
  });

  it("GET metrics: load times and requests, range 1h, 24h or 7d", async () => {
    for (let count = 0; count < 10; count += 1) await subject().visit("shop.localhost", count < 2 ? "/fail" : "/");
    const total = await eventually("the metrics contain the requests", async () => {
      const { body } = await subject().expect(200, "GET", "/v1/projects/shop/metrics?range=1h");
      return body.total.errors >= 2 && body.total.requests >= 10 && body.total;
    });
    assert.ok(total.latency_ms.p95 > 0 && total.answers["5xx"] >= 2 && total.bytes_out > 0);
    for (const range of ["1h", "24h", "7d"]) {
      const { body } = await subject().expect(200, "GET", `/v1/projects/shop/metrics?range=${range}`);
      assert.equal(body.range, range);
      assert.ok("page_load" in body.total && body.buckets.length <= 400);
    }
    const looked = await eventually(
      "the platform probed the first page",
      async () => (await subject().expect(200, "GET", "/v1/projects/shop/metrics")).body.page,
    );
    for (const phase of ["dns_ms", "connect_ms", "tls_ms", "first_byte_ms", "total_ms"])
      assert.ok(phase in looked, phase);
  });

  it("GET logs: source build or runtime, limit lines; kept after a redeploy", async () => {
    await subject().visit("shop.localhost", "/to-be-logged");
    await eventually("the log contains the line", async () => {
      const { lines } = (await subject().expect(200, "GET", "/v1/projects/shop/logs?limit=200")).body;
      return lines.some(({ text }: Json) => text === "asked for /to-be-logged");
    });
    const { body } = await subject().expect(200, "GET", "/v1/projects/shop/logs?source=runtime&limit=5000");
    const up = body.lines.filter(({ text }: Json) => /^shop (?:one|two) is up$/.test(text));
    assert.ok(
      new Set(up.map(({ deployment }: Json) => deployment)).size >= 3,
      "the log contains lines of several deployments",
    );
    const found = await subject().expect(200, "GET", "/v1/projects/shop/logs?since=1h&grep=TO-BE-LOGGED");
    assert.deepEqual([...new Set(found.body.lines.map(({ text }: Json) => text))], ["asked for /to-be-logged"]);
    const earlier = await subject().expect(200, "GET", "/v1/projects/shop/logs?until=1d");
    assert.deepEqual(earlier.body.lines, []);
    const { body: counts } = await subject().expect(
      200,
      "GET",
      "/v1/projects/shop/logs/counts?grep=TO-BE-LOGGED&parts=6",
    );
    assert.deepEqual([counts.lines, counts.parts.length <= 6], [1, true]);
    assert.equal(
      counts.parts.reduce((sum: number, { lines }: Json) => sum + lines, 0),
      1,
    );
    const build = await subject().expect(200, "GET", "/v1/projects/shop/logs?source=build&limit=3");
    assert.deepEqual([build.body.source, build.body.lines.length], ["build", 3]);
  });

  it("GET logs: of 6,000 lines written at once the newest 5,000 are readable", async () => {
    await subject().visit("shop.localhost", "/burst");
    const texts = await eventually("the log contains the last line", async () => {
      const { lines } = (await subject().expect(200, "GET", "/v1/projects/shop/logs?limit=5000")).body;
      const all: string[] = lines.map(({ text }: Json) => text);
      return all.some((text) => text === "burst 5999") && all;
    });
    // Probes may have requested pages in the meantime, and each request adds a line.
    const burst = texts.filter((text) => text.startsWith("burst "));
    const others = texts.length - burst.length;
    assert.ok(texts.length === 5000 && others < 100, `${others} other lines`);
    assert.deepEqual(
      burst,
      Array.from({ length: 5000 - others }, (_, index) => `burst ${1000 + others + index}`),
    );
  });

  it("GET logs follows as events, as the description declares", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/openapi.json");
    assert.ok("text/event-stream" in body.paths["/v1/projects/{slug}/logs"].get.responses["200"].content);
    const headers = { authorization: `Bearer ${subject().tokens.member}` };
    const left = new AbortController();
    const url = `${subject().platform.api}/v1/projects/shop/logs?follow=true&limit=5`;
    const response = await fetch(url, { headers, signal: left.signal });
    assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/);
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      if (/^data: .*"lines".*\n/m.test(text)) break;
    }
    left.abort();
    assert.match(text, /^id: \S+$/m, "an event has no id, so a client cannot resume");
  });

  it("GET processes shows the running processes, PUT changes them", async () => {
    const path = "/v1/projects/shop/processes";
    // The promotions above restarted the application, and its previous processes are still stopping.
    const web = await eventually("the requested number of replicas runs", async () => {
      const [first] = (await subject().expect(200, "GET", path, { as: "member" })).body.processes as Json[];
      assert.equal(first.type, "web");
      return first.running.length === first.replicas && first;
    });
    const same = { body: { replicas: web.replicas } };
    assert.equal((await subject().expect(403, "PUT", `${path}/web`, same)).body.code, "operator_only");
    assert.equal((await subject().expect(200, "PUT", `${path}/web`, { as: "operator", ...same })).status, 200);
  });

  it("POST restart restarts the processes", async () => {
    const { body } = await eventually("no other deployment is in progress", async () => {
      const answer = await subject().call("POST", "/v1/projects/shop/restart", { as: "member", body: {} });
      assert.ok(answer.status === 200 || answer.body.code === "deploy_in_progress", answer.text);
      return answer.status === 200 && answer;
    });
    assert.deepEqual([body.status, body.deployment.status], ["restarted", "active"]);
  });

  it("a command runs once in the application's image, with its output and exit code", async () => {
    const path = "/v1/projects/shop/runs";
    const { run, output } = (await subject().expect(201, "POST", path, { body: { command: "echo once; exit 3" } }))
      .body;
    assert.deepEqual([run.status, run.exit_code, output], ["failed", 3, "once\n"]);
    const [listed] = (await subject().expect(200, "GET", path)).body.runs as Json[];
    assert.deepEqual((await subject().expect(200, "GET", `${path}/${run.number}`)).body.run, listed);
    assert.deepEqual((await subject().expect(200, "POST", `${path}/${run.number}/cancel`)).body.run, listed);
  });

  it("GET diagnosis lists findings", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/projects/shop/diagnosis");
    assert.ok(Array.isArray(body.findings) && body.project.slug === "shop");
  });

  it("a command with a terminal stays queued until its terminal is opened", async () => {
    const path = "/v1/projects/shop/runs";
    const asked = await subject().expect(201, "POST", path, { body: { command: "sh", terminal: true } });
    const { number, status } = asked.body.run;
    assert.equal(status, "queued");
    assert.equal((await subject().expect(200, "GET", `${path}/${number}/terminal`)).body.run.number, number);
    const { run } = (await subject().expect(200, "POST", `${path}/${number}/cancel`)).body;
    assert.equal(run.status, "cancelled");
  });

  it("GET timeline shows changes", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/projects/shop/timeline");
    assert.ok(body.timeline.length > 0);
  });
}

async function completed(subject: Subject, id: string): Promise<void> {
  await eventually("the backup is completed", async () => {
    const { body } = await subject.expect(200, "GET", `/v1/backups/${id}`);
    assert.notEqual(body.status, "failed", JSON.stringify(body.failure));
    return body.status === "completed";
  });
}
