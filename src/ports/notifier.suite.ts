import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Message, Notifier } from "./notifier.ts";

/** What an adapter's test provides to the suite. */
export interface NotifierFixture {
  readonly notifier: Notifier;
  /** Returns the messages received so far, each as one text. */
  received(): Promise<readonly string[]>;
  /** From now on the receiver refuses everything. */
  breakDown(): Promise<void>;
  close(): Promise<void>;
}

/** The rules that every adapter of the port obeys. `make` is called for each group of tests. */
export function notifierSuite(make: () => Promise<NotifierFixture>): void {
  describe("notifier", () => {
    let fixture: NotifierFixture;
    const signal = new AbortController().signal;
    const deliver = (message: Message) => fixture.notifier.deliver(message, signal);

    before(async () => {
      fixture = await make();
    });
    after(() => fixture.close());

    it("has a name for the rows of messages that wait", () => {
      assert.match(fixture.notifier.name, /^[a-z]+$/);
    });

    it("delivers the subject, the text and the link, whole and unchanged", async () => {
      assert.deepEqual(await deliver(message({ id: "ntf_1" })), { outcome: "delivered" });
      const [received = ""] = await fixture.received();
      for (const part of [subject, ...text.split("\n"), url]) assert.ok(received.includes(part), part);
    });

    it("delivers a message without a link", async () => {
      assert.deepEqual(await deliver(message({ id: "ntf_2", url: null })), { outcome: "delivered" });
      assert.equal((await fixture.received()).length, 2);
    });

    it("lets nothing in a message become a header or another message", async () => {
      const sneaky = "ok\r\nBcc: evil@example.test\r\n\r\n.\r\nMAIL FROM:<a@example.test>";
      await deliver(message({ id: "ntf_3", text: `${sneaky}\n.\nend` }));
      const received = await fixture.received();
      assert.equal(received.length, 3);
      assert.ok(received.some((each) => each.includes("end")));
    });

    it("says what went wrong on the other side without repeating the message", async () => {
      await fixture.breakDown();
      const delivery = await deliver(message({ id: "ntf_4" }));
      assert.equal(delivery.outcome, "failed");
      assert.ok(delivery.outcome === "failed" && delivery.reason.endsWith("."));
      for (const part of [subject, url, "secret"]) assert.ok(!JSON.stringify(delivery).includes(part), part);
    });
  });
}

const subject = "Approval needed: DELETE /v1/projects/démo";
const text = "The token “ci” asks.\n\n    indented, with ünïcödé ☃\nand a line that is rather long: ".concat(
  "x".repeat(60),
);
const url = "http://berth.test/decide/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ";

/** For the tests of what only one adapter does. */
export const shortMessage: Message = {
  ...{ id: "ntf_9", kind: "alert", subject: "s", text: "t", url: null },
  created_at: "2026-01-02T03:04:05.678Z",
};

function message(more: Partial<Message>): Message {
  return { id: "ntf_0", kind: "approval", subject, text, url, created_at: "2026-01-02T03:04:05.678Z", ...more };
}
