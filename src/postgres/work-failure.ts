import { DatabaseWorkFailed } from "../ports/postgres-host.ts";

const mostLetters = 300;

/** Classifies a client program's failure by its first error message, without the statement and what follows it. */
export function failureOfProgram(program: string, stderr: string): DatabaseWorkFailed {
  const lines = stderr.split("\n");
  const said = lines.find((line) => /ERROR: |FATAL: /.test(line)) ?? lines.find((line) => /error: /.test(line)) ?? "";
  const message = said
    .replace(/^.*?(?:ERROR|FATAL): +/, "")
    .replace(/^[a-z_]+: error: +/, "")
    .trim()
    .slice(0, mostLetters);
  return new DatabaseWorkFailed(
    reasonOf(stderr),
    `${program} failed: ${message === "" ? "it gave no reason" : message}`,
  );
}

export function failureOfQuery(error: Error & { code?: string }): DatabaseWorkFailed {
  if (error instanceof DatabaseWorkFailed) return error;
  if (error.code === "53100") return new DatabaseWorkFailed("full", "The database's disk is full.", error);
  const isOfServer = error.code !== undefined && /^[0-9A-Z]{5}$/.test(error.code) && !/^(?:57P|08)/.test(error.code);
  if (isOfServer) return new DatabaseWorkFailed("refused", error.message.slice(0, mostLetters), error);
  return new DatabaseWorkFailed("away", "The connection to the database was lost.", error);
}

function reasonOf(stderr: string): DatabaseWorkFailed["reason"] {
  if (/No space left on device|could not extend file/.test(stderr)) return "full";
  const isAway =
    /could not connect|connection to server .{0,300} failed|server closed the connection|terminating connection|is starting up|is shutting down/;
  return isAway.test(stderr) ? "away" : "refused";
}
