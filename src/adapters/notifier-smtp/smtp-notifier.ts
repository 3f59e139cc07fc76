import type { Delivery, Message, Notifier } from "../../ports/notifier.ts";

export interface SmtpOptions {
  /** `smtp://user:password@mail.example.com:587`, or `smtps://…:465` for TLS from the first byte. */
  readonly url: string;
  readonly from: string;
  readonly to: readonly string[];
}

/** Sends messages as plain-text e-mail. Uses TLS whenever the server offers it, and verifies its certificate. */
export function createSmtpNotifier({ url, from, to }: SmtpOptions): Notifier {
  return {
    name: "smtp",
    async deliver(message, signal) {
      // Load nodemailer only when e-mail is sent: it takes 10 MB of memory.
      const { createTransport } = await import("nodemailer");
      const transport = createTransport({ url, ...timeouts });
      const close = () => transport.close();
      signal.addEventListener("abort", close, { once: true });
      try {
        await transport.sendMail({ from, to: [...to], ...mailOf(message) });
        return { outcome: "delivered" };
      } catch (error) {
        return failure(error);
      } finally {
        signal.removeEventListener("abort", close);
        close();
      }
    },
  };
}

const timeouts = {
  connectionTimeout: 10_000,
  greetingTimeout: 10_000,
  socketTimeout: 20_000,
  dnsTimeout: 5000,
} as const;

// Keeps nodemailer from reading files or URLs that a message names.
function mailOf({ id, kind, subject, text, url, created_at }: Message) {
  return {
    subject: `[Berth] ${subject}`,
    text: url === null ? text : `${text}\n\n${url}\n`,
    date: new Date(created_at),
    // The same for every attempt, so that a mailbox can recognise a duplicate.
    messageId: `<${id}@berth>`,
    headers: { "X-Berth-Kind": kind, "Auto-Submitted": "auto-generated" },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}

function failure(error: unknown): Delivery {
  const { code = "unknown", responseCode } = error as { code?: string; responseCode?: number };
  const said = responseCode === undefined ? code : `${code}, it answered ${responseCode}`;
  return { outcome: "failed", reason: `The mail server did not accept the message (${said}).` };
}
