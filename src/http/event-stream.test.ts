import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Refused, type ServerEvent } from "../features/context.ts";
import { eventStream } from "./event-stream.ts";

async function textOf(events: AsyncIterable<ServerEvent>, signal = new AbortController().signal): Promise<string> {
  let text = "";
  for await (const part of eventStream(events, signal)) text += part;
  return text;
}

test("events go out as fields and JSON, and nothing in them ends a line early", async () => {
  async function* events() {
    yield { id: "1\ndata: forged", event: "line", data: { text: "a\nb" } };
    yield { data: null };
  }
  const text = await textOf(events());
  assert.equal(text, 'retry: 2000\n\nid: 1 data: forged\nevent: line\ndata: {"text":"a\\nb"}\n\ndata: null\n\n');
});

test("a stream whose reader may not read on ends with the refusal, and its source is ended", async () => {
  const over = new AbortController();
  let ended = false;
  async function* events() {
    try {
      yield { data: 1 };
      over.abort(new Refused("org_suspended"));
      yield await new Promise<ServerEvent>(() => {});
    } finally {
      ended = true;
    }
  }
  const source = events();
  assert.match(await textOf(source, over.signal), /data: 1\n\nevent: error\ndata: \{.*"code":"org_suspended"/);
  assert.equal(ended, false, "a source that waits is not waited for");
});

test("a source that fails ends the stream without telling how", async () => {
  async function* events(): AsyncGenerator<ServerEvent> {
    yield { data: 1 };
    throw new Error("select secret from somewhere");
  }
  const text = await textOf(events());
  assert.match(text, /"code":"internal"/);
  assert.doesNotMatch(text, /secret/);
});

test("an event that was sent is not kept for the rest of the stream", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const sent: WeakRef<object>[] = [];
  async function* events() {
    for (let number = 0; number < 100; number += 1) {
      const data = { number };
      sent.push(new WeakRef(data));
      yield { data };
    }
    // A weak reference keeps its object until the present turn has ended.
    await setImmediate();
    collect();
    yield { data: sent.filter((each) => each.deref() !== undefined).length };
  }
  const kept = /data: (\d+)\n\n$/.exec(await textOf(events()))?.[1];
  assert.ok(Number(kept) < 10, `${kept} of 100 events were kept`);
});
