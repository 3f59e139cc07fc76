import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { newId } from "../kit/ids.ts";
import type { LogStore, RequestRange, RuntimeChoice, RuntimeLine, RuntimeQuery, StoredRequest } from "./log-store.ts";
import type { InstanceKey } from "./runtime.ts";

/** What an adapter's test provides to the suite. */
export interface LogStoreFixture {
  readonly store: LogStore;
  /** Opens the same store again, as after a restart. */
  reopen(): Promise<LogStore>;
  /** The size limit of a build's log, small enough for a test to reach. */
  readonly buildLimitBytes: number;
  /** A number of bytes that exceeds what the store keeps of a project's output. */
  readonly moreThanKeptBytes: number;
}

/** The rules that every adapter of the port obeys. `make` is called once. */
export function logStoreSuite(make: () => Promise<LogStoreFixture>): void {
  describe("log store", () => {
    let fixture: LogStoreFixture;
    before(async () => {
      fixture = await make();
    });

    describe("build logs", () => buildRules(() => fixture));
    describe("logs of requests", () => requestRules(() => fixture));
    describe("runtime logs", () => runtimeRules(() => fixture));
  });
}

function requestRules(fixture: () => LogStoreFixture): void {
  const requestOf = (n: number, path = `/${n}`) => ({
    at: new Date(Date.UTC(2026, 0, 1, 0, 0, n)).toISOString(),
    ...{
      method: "GET",
      path,
      status: 200,
      ms: 1.5,
      bytes: 100,
      deployment: 1,
      replica: 0,
      request_id: `r${n}`,
      weight: 1,
    },
  });
  const readAll = async (store: LogStore, project: string, range: RequestRange = {}) => {
    const found: StoredRequest[] = [];
    await store.visitRequests(project, range, (request) => found.push(request) > 0);
    return found;
  };

  it("are visited newest first, within a range, until the visitor has enough, also after a restart", async () => {
    const { store, reopen } = fixture();
    const [project, other] = [newId("prj"), newId("prj")];
    const all = Array.from({ length: 30 }, (_, n) => requestOf(n));
    await store.appendRequests(project, all.slice(0, 20));
    await store.appendRequests(project, all.slice(20));
    await store.appendRequests(other, [requestOf(99)]);
    assert.deepEqual(await readAll(store, project), all.toReversed());
    const [since, until] = [requestOf(5).at, requestOf(8).at];
    assert.deepEqual(await readAll(await reopen(), project, { since, until }), all.slice(5, 8).toReversed());
    const some: StoredRequest[] = [];
    await store.visitRequests(project, {}, (request) => some.push(request) < 3);
    assert.deepEqual(some, all.slice(-3).toReversed());
    await store.remove(project, []);
    assert.deepEqual(await readAll(store, project), []);
    assert.equal((await readAll(store, other)).length, 1);
  });

  it("keep the newest of more than their limit, and have nothing for a project without requests", async () => {
    const { store, moreThanKeptBytes } = fixture();
    const project = newId("prj");
    assert.deepEqual(await readAll(store, project), []);
    const path = `/${"x".repeat(1000)}`;
    // Whole files are dropped, so one batch fits into a file.
    const count = 2 * Math.ceil(moreThanKeptBytes / 1000);
    for (let n = 0; n < count; n += 10)
      await store.appendRequests(
        project,
        Array.from({ length: 10 }, (_, i) => requestOf(n + i, path)),
      );
    const kept = await readAll(store, project);
    assert.ok(kept.length > 0 && kept.length < count, `${kept.length} of ${count}`);
    assert.equal(kept[0]?.request_id, `r${count - 1}`);
  });
}

function buildRules(fixture: () => LogStoreFixture): void {
  it("give back every byte, whatever the sizes it was written and read in", async () => {
    const { store } = fixture();
    const build = newId("bld");
    const lines = ["-----> Build", "", "äöü ☃ 🚀", "\ttab \r and \u001b[31mcolour\u001b[0m", "x".repeat(300), ""];
    await store.appendBuild(build, lines.slice(0, 2));
    await store.appendBuild(build, lines.slice(2));
    await store.appendBuild(build, []);
    const expected = lines.map((line) => `${line}\n`).join("");
    for (const maxBytes of [1, 16, 100, 100_000]) assert.equal(await readWhole(store, build, maxBytes), expected);
  });

  it("come in whole lines within the size that was asked for", async () => {
    const { store } = fixture();
    const build = newId("bld");
    await store.appendBuild(build, ["aaaa", "bbbb", "cccc"]);
    const first = await store.readBuild(build, 0, 12);
    assert.deepEqual(first, { text: "aaaa\nbbbb\n", next_offset: 10 });
    assert.deepEqual(await store.readBuild(build, 10, 12), { text: "cccc\n", next_offset: 15 });
    assert.deepEqual(await store.readBuild(build, 15, 12), { text: "", next_offset: 15 });
  });

  it("of a build that has said nothing are empty", async () => {
    assert.deepEqual(await fixture().store.readBuild(newId("bld"), 0, 100), { text: "", next_offset: 0 });
    assert.deepEqual(await fixture().store.readBuildTimes(newId("bld")), []);
  });

  it("know when their lines were appended, until they are removed", async () => {
    const { store } = fixture();
    const build = newId("bld");
    const before = new Date().toISOString();
    await store.appendBuild(build, ["one", "two"]);
    const [first, ...others] = await store.readBuildTimes(build);
    assert.deepEqual([first?.offset, others], [0, []]);
    assert.ok(before <= (first?.at ?? "") && (first?.at ?? "") <= new Date().toISOString(), first?.at);
    await store.removeBuilds([build]);
    assert.deepEqual(await store.readBuildTimes(build), []);
  });

  it("keep the order of calls made at once, and are read while they grow", async () => {
    const { store } = fixture();
    const build = newId("bld");
    const writing = Array.from({ length: 200 }, (_, i) => store.appendBuild(build, [`line ${i}`]));
    const meanwhile = await readWhole(store, build, 1000);
    await Promise.all(writing);
    const text = await readWhole(store, build, 1000);
    assert.equal(text, Array.from({ length: 200 }, (_, i) => `line ${i}\n`).join(""));
    assert.ok(text.startsWith(meanwhile));
  });

  it("are cut at the limit, marked once, and stay so", async () => {
    const { store, reopen, buildLimitBytes } = fixture();
    const build = newId("bld");
    const line = "z".repeat(99);
    await store.appendBuild(
      build,
      Array.from({ length: Math.ceil(buildLimitBytes / 100) + 5 }, () => line),
    );
    const cut = await readWhole(store, build, buildLimitBytes);
    assert.ok(Buffer.byteLength(cut) <= buildLimitBytes && Buffer.byteLength(cut) > buildLimitBytes - 300);
    await store.appendBuild(build, ["s"]);
    await (await reopen()).appendBuild(build, ["t"]);
    assert.equal(await readWhole(store, build, buildLimitBytes), cut);
    assert.equal(cut.split("\n").filter((text) => text !== line && text !== "").length, 1);
  });
}

function runtimeRules(fixture: () => LogStoreFixture): void {
  it("of one replica come without those of others, from the end and behind a cursor, however they are mixed", async () => {
    const { store } = fixture();
    const project = newId("prj");
    const text = (replica: number, index: number) =>
      `${index} ,"replica":${1 - replica},"text": ${index % 50 === 0 ? "x".repeat(20_000) : ""}`;
    const lines = Array.from({ length: 400 }, (_, index) => {
      const replica = index % 7 === 0 ? 1 : 0;
      return { at: new Date().toISOString(), deployment: 12, process: "web", replica, text: text(replica, index) };
    });
    for (let from = 0; from < lines.length; from += 40)
      await store.appendRuntime(project, lines.slice(from, from + 40));
    const stored = (await store.readRuntime(project, { limit: 5000 })).lines;
    for (const replica of [0, 1]) {
      const wanted = stored.filter((line) => line.replica === replica);
      for (const limit of [1, 3, wanted.length, 5000])
        assert.deepEqual((await store.readRuntime(project, { limit, replica })).lines, wanted.slice(-limit));
      const seen: unknown[] = [];
      for (let after = "0:0"; ;) {
        const page = await store.readRuntime(project, { limit: 7, replica, after });
        if (page.lines.length === 0) break;
        seen.push(...page.lines);
        after = page.cursor;
      }
      assert.deepEqual(seen, wanted);
    }
    assert.deepEqual((await store.readRuntime(project, { limit: 10, replica: 5 })).lines, []);
  });

  it("are visited newest first, those alone that a query chooses, until the visitor has enough", async () => {
    const { store } = fixture();
    const project = newId("prj");
    const lines = Array.from({ length: 300 }, (_, n) => ({
      ...{ at: new Date(Date.UTC(2026, 0, 1, 0, 0, n)).toISOString(), deployment: 1, replica: n % 2 },
      ...{ process: n % 3 === 0 ? "worker" : "web", text: `line ${n}` },
    }));
    for (let from = 0; from < lines.length; from += 50)
      await store.appendRuntime(project, lines.slice(from, from + 50));
    const visited = async (query: RuntimeChoice, most = Infinity) => {
      const found: RuntimeLine[] = [];
      await store.visitRuntime(project, query, (line) => found.push(line) < most);
      return found;
    };
    assert.deepEqual(await visited({}), lines.toReversed());
    assert.deepEqual(await visited({}, 3), lines.slice(-3).toReversed());
    const [since, until] = [lines[100]?.at ?? "", lines[200]?.at ?? ""];
    const accepts = (text: string) => text.endsWith("0");
    assert.deepEqual(
      await visited({ since, until, process: "worker", replica: 0, accepts, contains: "LINE" }),
      [180, 150, 120].map((n) => lines[n]),
    );
    assert.deepEqual(await visited({ until: "2025-01-01T00:00:00.000Z" }), []);
  });

  it("of one process type come without those of others, whatever their text pretends", async () => {
    const { store } = fixture();
    const project = newId("prj");
    const lines = ["web", "worker", "web", "clock-2"].map((process, index) => ({
      ...lineOf(`${index} ","process":"worker","replica":1,"text":"`),
      process,
      replica: index % 2,
    }));
    const cursor = "7";
    const instance = { workload_id: `${newId("dep")}.worker`, ordinal: 0, attempt: 1 };
    await store.appendRuntime(project, lines, { instance, cursor });
    assert.equal(await store.readPosition(instance), cursor);
    const read = async (query: { process?: string; replica?: number }) =>
      (await store.readRuntime(project, { limit: 10, ...query })).lines;
    assert.deepEqual(await read({}), lines);
    for (const process of ["web", "worker", "clock-2", "none"])
      assert.deepEqual(
        await read({ process }),
        lines.filter((line) => line.process === process),
      );
    assert.deepEqual(
      await read({ replica: 1 }),
      lines.filter((line) => line.replica === 1),
    );
    assert.deepEqual(await read({ process: "worker", replica: 0 }), []);
  });

  it("of a time and with a text come without others, from the end and behind a cursor, over several files", async () => {
    const { store } = fixture();
    const project = newId("prj");
    const atMs = (second: number) => new Date(Date.UTC(2026, 0, 2, 3, 0, second)).toISOString();
    const texts = ['ERROR "disk" \\ full ☃', "fine", '","text":"error', "an Error", "filler ".repeat(40)];
    const lines = Array.from({ length: 120 }, (_, index) => ({
      ...lineOf(`${index} ${texts[index % texts.length]}`),
      at: atMs(index),
    }));
    for (let from = 0; from < lines.length; from += 20)
      await store.appendRuntime(project, lines.slice(from, from + 20));
    const read = async (query: {
      since?: string;
      until?: string;
      contains?: string;
      accepts?: (text: string) => boolean;
    }) => {
      const paged = await followQuery(store, project, query);
      assert.deepEqual((await store.readRuntime(project, { limit: 5000, ...query })).lines, paged);
      return paged;
    };
    assert.deepEqual(await read({ since: atMs(20), until: atMs(90) }), lines.slice(20, 90));
    assert.deepEqual(await read({ since: atMs(200) }), []);
    assert.deepEqual(await read({ until: atMs(3) }), lines.slice(0, 3));
    const matching = (pattern: RegExp) => lines.filter(({ text }) => pattern.test(text));
    assert.deepEqual(await read({ contains: "ERROR" }), matching(/error/i));
    assert.deepEqual(await read({ contains: '"disk" \\ FULL ☃' }), matching(/disk/));
    assert.deepEqual(await read({ contains: '"deployment":3' }), []);
    assert.deepEqual(await read({ accepts: (text) => /error/i.test(text) }), matching(/error/i));
    assert.deepEqual(await read({ contains: "fine", since: atMs(100) }), matching(/fine/).slice(-4));
    const newest = await store.readRuntime(project, { limit: 2, contains: "fine", until: atMs(100) });
    assert.deepEqual(newest.lines, matching(/fine/).slice(18, 20));
  });

  it("written before the last file was begun are found by their time", async () => {
    const { store, moreThanKeptBytes } = fixture();
    const project = newId("prj");
    const start = new Date().toISOString();
    const line = { ...lineOf("f".repeat(100)), at: start };
    for (let bytes = 0; bytes < moreThanKeptBytes; bytes += 5000)
      await store.appendRuntime(
        project,
        Array.from({ length: 40 }, () => line),
      );
    const kept = (await store.readRuntime(project, { limit: 5000 })).lines.length;
    assert.equal((await store.readRuntime(project, { limit: 5000, since: start })).lines.length, kept);
  });

  it("give the newest lines, oldest first, unchanged", async () => {
    const { store } = fixture();
    const project = newId("prj");
    const lines = [lineOf('quote " and \\ and ☃'), lineOf(""), lineOf("\u0000\u001b[1m"), lineOf("last")];
    await store.appendRuntime(project, lines);
    assert.deepEqual((await store.readRuntime(project, { limit: 10 })).lines, lines);
    assert.deepEqual((await store.readRuntime(project, { limit: 2 })).lines, lines.slice(2));
  });

  it("come in pages of 2 MiB at most, the newest of them or the first behind a cursor, and of one line at least", async () => {
    const { store } = fixture();
    const project = newId("prj");
    // A control character takes six bytes as JSON.
    for (let from = 0; from < 80; from += 20)
      await store.appendRuntime(
        project,
        Array.from({ length: 20 }, (_, n) => lineOf(`${from + n} ${"\u0001".repeat(10_000)}`)),
      );
    const all = await follow(store, project, "0:0", 5000);
    assert.ok(all.length > 2);
    const newest = textsOf((await store.readRuntime(project, { limit: 5000 })).lines);
    assert.ok(newest.length > 0 && newest.length < 80 && Buffer.byteLength(JSON.stringify(newest)) <= 2 * 1024 * 1024);
    assert.deepEqual(newest, all.slice(-newest.length));
    const first = (await store.readRuntime(project, { limit: 5000, after: "0:0" })).lines;
    assert.ok(Buffer.byteLength(JSON.stringify(first)) <= 2 * 1024 * 1024);
    assert.deepEqual(textsOf(first), all.slice(0, first.length));
    const huge = newId("prj");
    await store.appendRuntime(huge, [lineOf("x".repeat(3 * 1024 * 1024)), lineOf("after")]);
    assert.deepEqual(
      textsOf((await store.readRuntime(huge, { limit: 9, after: "0:0" })).lines).map((text) => text[0]),
      ["x"],
    );
  });

  it("of a project that has said nothing are empty, and its cursor leads to its first line", async () => {
    const { store } = fixture();
    const project = newId("prj");
    const empty = await store.readRuntime(project, { limit: 10 });
    assert.deepEqual(empty.lines, []);
    await store.appendRuntime(project, [lineOf("first")]);
    assert.deepEqual(textsOf((await store.readRuntime(project, { limit: 10, after: empty.cursor })).lines), ["first"]);
  });

  it("are followed by cursors without a gap or a repetition", async () => {
    const { store } = fixture();
    const project = newId("prj");
    const start = await store.readRuntime(project, { limit: 1 });
    const all = numbered(0, 95);
    for (let i = 0; i < all.length; i += 10) await store.appendRuntime(project, all.slice(i, i + 10));
    assert.deepEqual(await follow(store, project, start.cursor, 7), textsOf(all));
    const end = await store.readRuntime(project, { limit: 5 });
    assert.deepEqual(await store.readRuntime(project, { limit: 5, after: end.cursor }), {
      lines: [],
      cursor: end.cursor,
    });
  });

  it("keep what is newest when more is written than is kept, and cursors go on to be right", async () => {
    const { store, moreThanKeptBytes } = fixture();
    const project = newId("prj");
    await store.appendRuntime(project, [lineOf("oldest")]);
    const old = await store.readRuntime(project, { limit: 1 });
    const batches = Math.ceil(moreThanKeptBytes / 5000);
    let recent = "";
    for (let batch = 0; batch < batches; batch += 1) {
      await store.appendRuntime(
        project,
        Array.from({ length: 50 }, (_, i) => lineOf(`${batch * 50 + i} ${"f".repeat(60)}`)),
      );
      if (batch === batches - 2) recent = (await store.readRuntime(project, { limit: 1 })).cursor;
    }
    const total = batches * 50;
    const newest = (await store.readRuntime(project, { limit: 70 })).lines.map((line) =>
      Number.parseInt(line.text, 10),
    );
    assert.deepEqual(
      newest,
      Array.from({ length: 70 }, (_, i) => total - 70 + i),
    );
    assert.deepEqual((await follow(store, project, recent, 1000)).length, 50);
    const kept = (await follow(store, project, old.cursor, 1000)).map((text) => Number.parseInt(text, 10));
    assert.ok(kept.length > 70 && kept.length < total);
    assert.deepEqual(
      kept,
      Array.from({ length: kept.length }, (_, i) => total - kept.length + i),
    );
    assert.ok(!(await store.readRuntime(project, { limit: 5000 })).lines.some((line) => line.text === "oldest"));
  });

  it("keep every line of writers and readers at work at once", async () => {
    const { store } = fixture();
    const project = newId("prj");
    const start = await store.readRuntime(project, { limit: 1 });
    const writing = Array.from({ length: 40 }, (_, i) =>
      store.appendRuntime(project, [lineOf(`a${i}`), lineOf(`b${i}`)], {
        instance: instanceOf(project, i),
        cursor: "1",
      }),
    );
    await Promise.all([...writing, store.readRuntime(project, { limit: 10 }), follow(store, project, start.cursor, 3)]);
    const texts = await follow(store, project, start.cursor, 9);
    assert.deepEqual(texts, Array.from({ length: 40 }, (_, i) => [`a${i}`, `b${i}`]).flat());
  });

  it("remember the position of each instance over a restart", async () => {
    const { store, reopen } = fixture();
    const project = newId("prj");
    assert.equal(await store.readPosition(instanceOf(project)), null);
    await store.appendRuntime(project, [lineOf("a")], { instance: instanceOf(project), cursor: "10" });
    await store.appendRuntime(project, [lineOf("b")], { instance: instanceOf(project, 1), cursor: "3" });
    await store.appendRuntime(project, [], { instance: instanceOf(project), cursor: "12" });
    const again = await reopen();
    assert.equal(await again.readPosition(instanceOf(project)), "12");
    assert.equal(await again.readPosition(instanceOf(project, 1)), "3");
    assert.deepEqual(textsOf((await again.readRuntime(project, { limit: 10 })).lines), ["a", "b"]);
  });

  it("remember of each replica the position of the start that wrote last, until the workload is forgotten", async () => {
    const { store } = fixture();
    const project = newId("prj");
    const [first, other] = [instanceOf(project), instanceOf(project, 1)];
    const next = { ...first, attempt: 2 };
    await store.appendRuntime(project, [lineOf("a")], { instance: first, cursor: "10" });
    await store.appendRuntime(project, [lineOf("b")], { instance: other, cursor: "3" });
    assert.equal(await store.readPosition(next), null);
    await store.appendRuntime(project, [lineOf("c")], { instance: next, cursor: "5" });
    assert.deepEqual([await store.readPosition(next), await store.readPosition(other)], ["5", "3"]);
    await store.forgetPositions(first.workload_id);
    await store.forgetPositions(first.workload_id);
    assert.deepEqual([await store.readPosition(next), await store.readPosition(other)], [null, null]);
    assert.deepEqual(textsOf((await store.readRuntime(project, { limit: 10 })).lines), ["a", "b", "c"]);
  });
}

/** A replica's first start; each project has one workload here. */
function instanceOf(project: string, ordinal = 0): InstanceKey {
  return { workload_id: project.replace("prj_", "dep_"), ordinal, attempt: 1 };
}

function lineOf(text: string): RuntimeLine {
  return { at: "2026-01-02T03:04:05.678Z", deployment: 3, process: "web", replica: 1, text };
}

function numbered(from: number, to: number): RuntimeLine[] {
  return Array.from({ length: to - from }, (_, i) => lineOf(`n${from + i}`));
}

function textsOf(lines: readonly RuntimeLine[]): string[] {
  return lines.map((line) => line.text);
}

async function follow(store: LogStore, project: string, from: string, limit: number): Promise<string[]> {
  const texts: string[] = [];
  let cursor = from;
  for (;;) {
    const page = await store.readRuntime(project, { limit, after: cursor });
    texts.push(...textsOf(page.lines));
    if (page.lines.length === 0) return texts;
    assert.ok(page.lines.length <= limit);
    cursor = page.cursor;
  }
}

async function followQuery(store: LogStore, project: string, query: Partial<RuntimeQuery>): Promise<RuntimeLine[]> {
  const lines: RuntimeLine[] = [];
  for (let after = "0:0"; ;) {
    const page = await store.readRuntime(project, { ...query, limit: 7, after });
    if (page.lines.length === 0) return lines;
    lines.push(...page.lines);
    after = page.cursor;
  }
}

async function readWhole(store: LogStore, build: string, maxBytes: number): Promise<string> {
  let text = "";
  let offset = 0;
  for (;;) {
    const chunk = await store.readBuild(build, offset, maxBytes);
    text += chunk.text;
    if (chunk.next_offset === offset) return text;
    offset = chunk.next_offset;
  }
}
