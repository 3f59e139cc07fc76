import type { Delivery, Message, Notifier } from "../../ports/notifier.ts";

export interface SmtpOptions {
  /** `smtp://user:password@mail.example.com:587`, or `smtps://…:465` for TLS from the first byte. */
  readonly url: string;
  readonly from: string;
  readonly to: readonly string[];
}

/** Messages as e-mail in plain text. TLS is used whenever the server offers it, and its certificate is checked. */
export function createSmtpNotifier({ url, from, to }: SmtpOptions): Notifier {
  return {
    name: "smtp",
    async deliver(message, signal) {
      // Only who sends e-mail pays for it: 10 MB of memory.
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

// Nothing in a message is read from files or addresses, whatever it says.
function mailOf({ id, kind, subject, text, url, created_at }: Message) {
  return {
    subject: `[Berth] ${subject}`,
    text: url === null ? text : `${text}\n\n${url}\n`,
    date: new Date(created_at),
    // The same for every attempt, so that a mailbox can tell a second copy.
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
