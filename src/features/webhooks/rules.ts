import type { WebhookFormat } from "../../contract/webhooks.ts";

/** One event, as stored in the row of its delivery. */
export interface WebhookEvent {
  readonly event: string;
  readonly created_at: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** The pauses after failed attempts; after the last one the event is given up. */
const pausesMs = [5000, minuteMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 5 * hourMs, 10 * hourMs];

/** Returns the pause after this many attempts of one event, in milliseconds; null: no further attempt. */
export function pauseAfter(attempts: number): number | null {
  return pausesMs[attempts - 1] ?? null;
}

/** Returns how long the webhook's other events wait after this many consecutive failures, so that a dead receiver is not called for each of them. */
export function holdAfter(failures: number): number {
  return Math.min(15_000 * 2 ** Math.min(failures - 1, 10), 15 * minuteMs);
}

export function isDead(failingSince: Date, now: Date): boolean {
  return now.getTime() - failingSince.getTime() >= 3 * 24 * hourMs;
}

/** Returns the type of a format's body. ntfy shows a body of any type but text as an attachment. */
export function contentTypeOf(format: WebhookFormat): string {
  return format === "ntfy" ? "text/plain; charset=utf-8" : "application/json";
}

/** Returns the request body in the receiver's format. */
export function bodyOf(format: Exclude<WebhookFormat, "email">, event: WebhookEvent): string {
  const { event: type, created_at: timestamp, data } = event;
  switch (format) {
    case "json":
      return JSON.stringify({ type, timestamp, data });
    case "slack":
      return JSON.stringify({ text: slackText(sentenceOf(event)) });
    case "discord":
      // Tenants choose names and messages; `parse: []` keeps them from mentioning people.
      return JSON.stringify({
        content: cut(discordText(sentenceOf(event)), mostCharacters),
        allowed_mentions: { parse: [] },
      });
    case "telegram":
      // The address names the chat. Without `parse_mode` Telegram shows text as it is ("sendMessage" of its Bot API), but finds mentions.
      return JSON.stringify({
        text: sentenceOf(event).replaceAll("@", "@\u2060"),
        link_preview_options: { is_disabled: true },
      });
    case "ntfy":
      return sentenceOf(event);
    case "teams":
      return JSON.stringify({ type: "message", attachments: [teamsCard(sentenceOf(event))] });
  }
}

/** The origin of a mail, in words that its reader can act on. */
export interface MailSender {
  readonly org: string;
  readonly name: string;
  readonly controlUrl: string;
}

export function mailOf(event: WebhookEvent, { org, name, controlUrl }: MailSender) {
  const sentence = sentenceOf(event).replaceAll(/\s+/g, " ");
  const origin = `The organization ${org} of ${controlUrl} sends its events to this address.`;
  const end = `Its owners can stop this with: berth webhooks off ${JSON.stringify(name)}`;
  return { subject: cut(sentence, 120), text: `${sentence}\n\n${event.created_at}\n\n--\n${origin}\n${end}\n` };
}

/** Returns the mail that an address receives before it is confirmed. It contains no text that a tenant can choose freely. */
export function confirmationMail(code: string, { org, controlUrl }: Omit<MailSender, "name">) {
  const lines = [
    `The organization ${org} of ${controlUrl} wants to send its events to this address.`,
    `If you want these events, give this code to the organization's owner: ${code}`,
    "",
    "The owner confirms the address with: berth webhooks confirm <webhook> <code>",
    "If you do not know the organization, ignore this mail: without the code you get no further mail.",
  ];
  return { subject: `Confirm this address: ${code}`, text: `${lines.join("\n")}\n` };
}

/** Teams shows the body of a workflow's webhook if it is an Adaptive Card; `RichTextBlock` shows text without Markdown. */
function teamsCard(text: string) {
  const inlines = [{ type: "TextRun", text }];
  const card = { type: "AdaptiveCard", version: "1.4", body: [{ type: "RichTextBlock", inlines }] };
  return { contentType: "application/vnd.microsoft.card.adaptive", content: card };
}

// Escapes the characters that start links, mentions and entities in Slack ("Formatting text for app surfaces").
function slackText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

// Escapes what Discord would show as formatting: `[text](address)` hides where a link leads ("Markdown Text 101").
function discordText(text: string): string {
  return text.replaceAll(/[\\`*_~|<>[\]#]/g, "\\$&");
}

// Discord accepts 2,000 characters.
const mostCharacters = 1900;

type Data = WebhookEvent["data"];
const word = (value: unknown) => (typeof value === "string" || typeof value === "number" ? String(value) : "");
const short = (commit: unknown) => word(commit).slice(0, 8);
const because = (data: Data) => [word(data["summary"]), word(data["hint"])].filter(Boolean).join(" ");

const sentences: Readonly<Record<string, (data: Data) => string>> = {
  "deployment.activated": (data) => `deployment ${word(data["deployment"])} (${short(data["commit"])}) is live.`,
  "deployment.failed": (data) => `deployment ${word(data["deployment"])} (${short(data["commit"])}) failed.`,
  "build.succeeded": (data) => `build ${word(data["build"])} of ${short(data["commit"])} succeeded.`,
  "build.failed": (data) => `build ${word(data["build"])} of ${short(data["commit"])} failed.`,
  "backup.completed": () => "the database was backed up.",
  "backup.failed": () => "the backup of the database failed.",
  "backup.verified": () => "a backup of the database was verified.",
  "backup.damaged": () => "a backup of the database failed its verification.",
  "certificate.issued": (data) => `${word(data["hostname"])} has a certificate.`,
  "certificate.failed": (data) => `${word(data["hostname"])} got no certificate.`,
  "alert.opened": (data) => `alert (${word(data["severity"])}) ${word(data["check"])}, ${word(data["subject"])}.`,
  "alert.resolved": (data) => `resolved: ${word(data["check"])}, ${word(data["subject"])}.`,
  "approval.pending": (data) =>
    `the token "${word(data["token"])}" waits for approval of ${word(data["route"])} ${word(data["target"])}.`,
  "webhook.test": () => "this is a test of your webhook.",
  "webhook.confirmation": () => "Berth mailed the code that confirms the address.",
};

/** Returns one sentence for people about what happened, with its reason. */
function sentenceOf({ event, data }: WebhookEvent): string {
  const project = word(data["project"]);
  const said = sentences[event]?.(data) ?? event;
  const text = `${project === "" ? "Berth" : project}: ${said} ${because(data)}`.trim();
  return cut(text, mostCharacters);
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)} …` : text;
}
