import type { IncomingMessage, ServerResponse } from "node:http";
import { challengeAnswer } from "../features/certificates/certificates.ts";
import type { Db } from "../store/database.ts";

/** The path under which certificate authorities fetch the response to a challenge (RFC 8555 §8.3). */
export const challengePrefix = "/.well-known/acme-challenge/";

const tokenPattern = /^[\w-]{1,128}$/;

/** Responds with the challenge stored in the database, for any hostname. */
export async function answerChallenge(db: Db, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const token = request.url?.slice(challengePrefix.length) ?? "";
  const answer = tokenPattern.test(token) ? await challengeAnswer(db, token) : undefined;
  response.writeHead(answer === undefined ? 404 : 200, { "content-type": "text/plain", "cache-control": "no-store" });
  response.end(answer);
}
