import assert from "node:assert/strict";
import { test } from "node:test";
import { mailServer, type ParsedMail } from "../../../test/support/mail-server.ts";
import { notifierSuite, shortMessage as message } from "../../ports/notifier.suite.ts";
import { createSmtpNotifier } from "./smtp-notifier.ts";

const never = new AbortController().signal;
const people = { from: "berth@example.test", to: ["ada@example.test", "grace@example.test"] };

notifierSuite(async () => {
  const server = await mailServer();
  return {
    notifier: createSmtpNotifier({ url: server.url, ...people }),
    received: async () => server.mails.map((mail) => [mail.subject, mail.text].join("\n")),
    breakDown: async () => void (server.state.refuses = true),
    close: server.close,
  };
});

test("a mail goes to all receivers, as plain text, and each attempt has the same message id", async () => {
  const server = await mailServer();
  const notifier = createSmtpNotifier({ url: server.url, ...people });
  for (let attempt = 0; attempt < 2; attempt += 1) await notifier.deliver(message, never);
  const [first, second] = server.mails as [ParsedMail, ParsedMail];
  assert.deepEqual(server.receivers.slice(0, 2), people.to);
  assert.equal(first.subject, "[Berth] s");
  assert.equal(first.html, false);
  assert.deepEqual([first.messageId, second.messageId], ["<ntf_9@berth>", "<ntf_9@berth>"]);
  assert.equal(first.date?.toISOString(), "2026-01-02T03:04:05.000Z");
  await server.close();
});

test("a wrong password is told without the password", async () => {
  const server = await mailServer();
  const url = server.url.replace("secret", "guessed-secret");
  const delivery = await createSmtpNotifier({ url, ...people }).deliver(message, never);
  assert.equal(delivery.outcome, "failed");
  assert.match(JSON.stringify(delivery), /EAUTH, it answered 535/);
  assert.ok(!JSON.stringify(delivery).includes("guessed"));
  await server.close();
});

test("no server is a failure", async () => {
  const server = await mailServer();
  await server.close();
  const delivery = await createSmtpNotifier({ url: server.url, ...people }).deliver(message, never);
  assert.equal(delivery.outcome, "failed");
});
