import type { Command } from "commander";
import type { Answer, Client } from "../../contract/client.ts";
import { webhookEvents, webhookFormats, type WebhookFormat } from "../../contract/webhooks.ts";
import { until } from "../../kit/until.ts";
import { addCommand, commandGroup, actCommand, listCommand, rowCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { CliError, usageError } from "../failures.ts";
import { oneLine, relativeTime } from "../render/text.ts";
import { oneNamed } from "../one-named.ts";

type Webhook = Answer<"webhooks.list">["webhooks"][number];
type Delivery = Answer<"webhooks.deliveries">["deliveries"][number];

export const addWebhooks = commandGroup({
  name: "webhooks",
  summary: "Send the organization's events to other services",
  alias: "hooks",
  commands: () => [
    addList,
    addAdd,
    addConfirm,
    addTest,
    addDeliveries,
    (webhooks, ctx) => addSwitch(webhooks, ctx, { word: "on", enabled: true, summary: "Switch a webhook on again" }),
    (webhooks, ctx) =>
      addSwitch(webhooks, ctx, {
        word: "off",
        enabled: false,
        summary: "Switch a webhook off; its waiting events are dropped",
      }),
    addRemove,
  ],
});

const addList = listCommand({
  row: "webhooks.list",
  usage: "list",
  summary: "List the organization's webhooks",
  isDefault: true,
  examples: ["berth webhooks", "berth webhooks list --json"],
  items: (answer) => answer.webhooks,
  columns: {
    NAME: (webhook) => oneLine(webhook.name, 40),
    ADDRESS: (webhook) => oneLine(webhook.url, 50),
    FORMAT: (webhook) => webhook.format,
    EVENTS: (webhook) => webhook.events.join(","),
    STATE: stateOf,
    ID: (webhook) => webhook.id,
  },
  empty: "There are no webhooks yet: `berth webhooks add <url>` adds one.",
});

function stateOf({ enabled, confirmed, disabled_reason, failing_since }: Webhook): string {
  if (!confirmed) return "not confirmed";
  if (!enabled) return disabled_reason === null ? "off" : `off: ${oneLine(disabled_reason, 80)}`;
  return failing_since === null ? "on" : `failing since ${relativeTime(failing_since)}`;
}

function addAdd(webhooks: Command, ctx: CliContext): void {
  addCommand(webhooks, {
    usage: "add <url>",
    summary: "Send events to an address; the secret of their signature is shown this once",
    examples: [
      "berth webhooks add https://example.com/berth --events deployment,alert",
      "berth webhooks add https://hooks.slack.com/services/… --format slack --name chat",
      "berth webhooks add ops@example.com --events deployment,alert",
    ],
  })
    .option("--name <name>", "a display name; by default the address or its host")
    .option("--format <format>", `one of ${webhookFormats.join(", ")}; email for an e-mail address, else json`)
    .option("--events <kinds>", "kinds of events, separated by commas", webhookEvents.join(","))
    .action(async (given: string, options: { name?: string; format?: string; events: string }) => {
      const url = /^[^:/@\s]+@[^/@\s]+$/.test(given) ? `mailto:${given}` : given;
      const isMail = url.startsWith("mailto:");
      const events = options.events.split(",").map((kind) => oneOf(webhookEvents, kind.trim(), "--events"));
      const format: WebhookFormat = oneOf(webhookFormats, options.format ?? (isMail ? "email" : "json"), "--format");
      const name = options.name ?? (isMail ? url.slice("mailto:".length) : (URL.parse(url)?.hostname ?? url));
      const made = await (await ctx.client()).call("webhooks.create", { body: { name, url, format, events } });
      ctx.output.result(made, () => (made.confirmed ? added(made) : unconfirmed(made)).join("\n"));
    });
}

const added = ({ id, name, secret }: Webhook & { readonly secret: string | null }) => [
  `Added "${oneLine(name)}" (${id}). Its secret, shown this once: ${secret}`,
  `\`berth webhooks test ${id}\` sends a test.`,
];

const unconfirmed = ({ id, name, url }: Webhook) => [
  `Added "${oneLine(name)}" (${id}). Berth mails a code to ${url.slice("mailto:".length)}. It sends events once you confirm the code:`,
  `berth webhooks confirm ${id} <code>`,
];

function addConfirm(webhooks: Command, ctx: CliContext): void {
  addCommand(webhooks, {
    usage: "confirm <webhook> <code>",
    summary: "Confirm an e-mail address by the code that was mailed to it; `test` mails it again",
    examples: ["berth webhooks confirm ops@example.com 1f0c2a-9b7e44"],
  }).action(async (given: string, code: string) => {
    const client = await ctx.client();
    const { id } = await findWebhook(client, given);
    const confirmed = await client.call("webhooks.update", { params: { id }, body: { code } });
    ctx.output.result(confirmed, () => `"${oneLine(confirmed.name)}" is confirmed and on.`);
  });
}

function oneOf<const T extends readonly string[]>(words: T, given: string, option: string): T[number] {
  const found = words.find((word) => word === given);
  if (found === undefined) throw usageError(`${option}: "${given}" is not one of ${words.join(", ")}.`);
  return found;
}

// The first attempt takes at most 10 seconds once it starts.
const waitMs = 30_000;

function addTest(webhooks: Command, ctx: CliContext): void {
  addCommand(webhooks, {
    usage: "test <webhook>",
    summary: "Send a test event and show what the receiver answers",
    examples: ["berth webhooks test chat"],
  }).action(async (given: string) => {
    const client = await ctx.client();
    const { id } = await findWebhook(client, given);
    const sent = await client.call("webhooks.test", { params: { id } });
    const ended = await outcomeOf(client, id, sent);
    ctx.output.result(ended, () => {
      const last = ended.attempts.at(-1);
      const what = ended.event === "webhook.confirmation" ? "The mail with the code" : "The test";
      if (last === undefined) return `${what} waits for its turn: \`berth webhooks deliveries ${id}\` shows it.`;
      const answer = last.http_status === null ? "" : ` with status ${last.http_status}`;
      if (last.reason === null) return `${what} was delivered${answer} in ${last.duration_ms} ms.`;
      return `Not delivered: ${oneLine(last.reason)} ${oneLine(last.excerpt, 200)}`.trim();
    });
    if (ended.status === "failed")
      throw new CliError("refused", "not_delivered", {
        message: "The test failed.",
        hint: `\`berth webhooks deliveries ${id}\` shows each attempt and its answer.`,
      });
  });
}

async function outcomeOf(client: Client, id: string, sent: Delivery): Promise<Delivery> {
  const look = async () => {
    const { deliveries } = await client.call("webhooks.deliveries", { params: { id } });
    return deliveries.find((each) => each.id === sent.id && each.status !== "queued");
  };
  return (await until(look, { timeoutMs: waitMs, atMostMs: 500 })) ?? sent;
}

const addDeliveries = listCommand({
  row: "webhooks.deliveries",
  usage: "deliveries <webhook>",
  summary: "List what was sent in the last 14 days, and each attempt's answer",
  examples: ["berth webhooks deliveries chat", "berth webhooks deliveries chat --json"],
  find: findWebhook,
  items: (answer) => answer.deliveries,
  columns: {
    WHEN: (delivery) => relativeTime(delivery.created_at),
    EVENT: (delivery) => delivery.event,
    STATUS: (delivery) => delivery.status,
    ATTEMPTS: (delivery) => String(delivery.attempts.length),
    "LAST ANSWER": lastAnswer,
    ID: (delivery) => delivery.id,
  },
  empty: "Nothing was sent yet.",
});

function lastAnswer({ attempts, next_attempt_at }: Delivery): string {
  const last = attempts.at(-1);
  if (last === undefined) return "";
  const taken = `${last.http_status ?? "delivered"} in ${last.duration_ms} ms`;
  const answer = last.reason === null ? taken : oneLine(last.reason, 60);
  return next_attempt_at === null ? answer : `${answer} Again ${relativeTime(next_attempt_at)}.`;
}

interface Switch {
  readonly word: "on" | "off";
  readonly enabled: boolean;
  readonly summary: string;
}

function addSwitch(webhooks: Command, ctx: CliContext, { word, enabled, summary }: Switch): void {
  rowCommand({
    row: "webhooks.update",
    usage: `${word} <webhook>`,
    summary,
    examples: [`berth webhooks ${word} chat`],
    find: findWebhook,
    input: () => ({ body: { enabled } }),
    text: ({ name }) => `"${oneLine(name)}" is ${word}.`,
  })(webhooks, ctx);
}

const addRemove = actCommand({
  row: "webhooks.delete",
  usage: "remove <webhook>",
  summary: "Remove a webhook, named by id or name",
  examples: ["berth webhooks remove chat"],
  find: findWebhook,
  warning: ({ thing: { name, url } }) =>
    `This removes the webhook "${oneLine(name)}" (${oneLine(url)}) with the list of its deliveries.`,
  text: (_, _paint, { thing }) => `Removed "${oneLine(thing.name)}".`,
});

async function findWebhook(client: Client, given: string): Promise<Webhook> {
  const { webhooks } = await client.call("webhooks.list");
  return oneNamed(webhooks, given, { noun: "webhook", names: ({ id, name }) => [id, name], list: "berth webhooks" });
}
