import type { AddressInfo } from "node:net";
// @ts-expect-error: the package has no type declarations.
import { simpleParser } from "mailparser";
import { SMTPServer, type SMTPServerDataStream } from "smtp-server";

/** The fields of a received mail that tests read. */
export interface ParsedMail {
  readonly subject: string;
  readonly text: string;
  readonly html: string | false;
  readonly messageId: string;
  readonly date?: Date;
}

/** Starts a real mail server that accepts mail from one user. */
export async function mailServer() {
  const mails: ParsedMail[] = [];
  const receivers: string[] = [];
  const state = { refuses: false };
  const keep = async (stream: SMTPServerDataStream) => {
    mails.push((await simpleParser(stream)) as ParsedMail);
  };
  const server = new SMTPServer({
    disabledCommands: ["STARTTLS"],
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _, done) =>
      username === "berth" && password === "secret"
        ? done(null, { user: username })
        : done(new Error("wrong password")),
    onRcptTo({ address }, _, done) {
      receivers.push(address);
      done(state.refuses ? Object.assign(new Error("no such mailbox"), { responseCode: 550 }) : null);
    },
    onData(stream, _, done) {
      void keep(stream).finally(done);
    },
  });
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  const { port } = server.server.address() as AddressInfo;
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()));
  return { mails, receivers, state, url: `smtp://berth:secret@127.0.0.1:${port}`, port, close };
}
