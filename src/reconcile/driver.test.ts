import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLog } from "../kit/log.ts";
import type { Topic, Wakeups } from "../store/wakeups.ts";
import { createDriver } from "./driver.ts";
import type { Task } from "./platform.ts";

function bells(): Wakeups & { ring(topic: Topic): void } {
  const listeners = new Map<Topic, (id: string) => void>();
  return {
    async send() {},
    on(topic, listener) {
      listeners.set(topic, listener);
      return () => void listeners.delete(topic);
    },
    isListening: () => true,
    async close() {},
    ring: (topic) => listeners.get(topic)?.(""),
  };
}

function counting(run: (count: number) => Promise<void>): { task: Task; reached(count: number): Promise<void> } {
  let count = 0;
  const waiting: { count: number; resolve: () => void }[] = [];
  const task: Task = {
    name: "counting",
    periodMs: 60_000,
    topics: ["apps"],
    async run() {
      count += 1;
      try {
        await run(count);
      } finally {
        for (const each of waiting) if (count >= each.count) each.resolve();
      }
      return { detail: `${count}` };
    },
  };
  return {
    task,
    reached: (wanted) =>
      new Promise((resolve) => (count >= wanted ? resolve() : void waiting.push({ count: wanted, resolve }))),
  };
}

test("a wake-up that arrives while the task runs is not lost", async () => {
  const wakeups = bells();
  const { task, reached } = counting(async (count) => {
    if (count === 1) wakeups.ring("apps");
  });
  const driver = createDriver({ tasks: [task], wakeups, log: silentLog });
  await driver.start();
  await reached(2);
  await driver.stop();
});

test("a task that throws is shown as failing and runs again", async () => {
  const wakeups = bells();
  const { task, reached } = counting(async (count) => {
    if (count === 1) throw new Error("the disk is full");
  });
  const driver = createDriver({ tasks: [task], wakeups, log: silentLog });
  await driver.start();
  assert.deepEqual([driver.status()[0]?.failing, driver.status()[0]?.detail], [true, "the disk is full"]);
  driver.wake("counting");
  await reached(2);
  await driver.stop();
  assert.equal(driver.status()[0]?.failing, false);
});

test("stop waits for the run under way and for what it left", async () => {
  const wakeups = bells();
  const order: string[] = [];
  const task: Task = {
    name: "slow",
    periodMs: 60_000,
    topics: [],
    async run() {
      await new Promise((resolve) => setTimeout(resolve, 20));
      order.push("run");
      return { detail: "" };
    },
    async settle() {
      order.push("settled");
    },
  };
  const driver = createDriver({ tasks: [task], wakeups, log: silentLog });
  void driver.start();
  await driver.stop();
  assert.deepEqual(order, ["run", "settled"]);
});
