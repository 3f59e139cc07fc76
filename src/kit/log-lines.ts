import { StringDecoder } from "node:string_decoder";
import { trimLast } from "./trim-last.ts";

/** Semantics: the maximum length of a log line in bytes. */
const longestLineBytes = 10_000;
const cutMark = " … [cut]";
/**
 * How much of a line is read: more than a log shows, because a secret that starts before the cut must be complete to be redacted. A
 * variable's value has at most 32 KiB, and three times that when percent-encoded.
 */
export const readLineBytes = 128 * 1024;
const longestSecretCharacters = 96 * 1024;

// Matches OSC sequences (titles, links), CSI sequences (cursor, colour) and short escapes. Node's own pattern takes quadratic time on a
// long series of unfinished sequences.
const escapes = /\x1b\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-Z\\^-~]/g;

/** Removes escape sequences and control characters, which could colour or overwrite the reader's terminal. */
export function withoutControls(text: string): string {
  return text.replace(escapes, "").replace(/[^\P{Cc}\t]/gu, "");
}

/** Redacts secrets in a line. Must run before the line is cut: a cut through a secret would leave its first part unredacted. */
export function hideSecrets(line: string, redact: (text: string) => string): string {
  const hidden = redact(line);
  // When the line was only read in part, a secret at its end may be incomplete.
  const isWhole = line.length * 3 < readLineBytes || Buffer.byteLength(line) < readLineBytes - 3;
  return isWhole ? hidden : hidden.slice(0, -longestSecretCharacters) + cutMark;
}

/** Cuts a line to a log's limit, never inside a character, and marks the cut. */
export function cutLine(line: string): string {
  // A UTF-16 unit takes at most three bytes in UTF-8.
  if (line.length * 3 <= longestLineBytes || Buffer.byteLength(line) <= longestLineBytes) return line;
  const bytes = Buffer.from(line);
  let room = longestLineBytes - Buffer.byteLength(cutMark);
  while (isWithinCharacter(bytes[room])) room -= 1;
  return bytes.toString("utf8", 0, room) + cutMark;
}

/** Returns whether this byte is a UTF-8 continuation byte. */
function isWithinCharacter(byte = 0): boolean {
  return (byte & 0b1100_0000) === 0b1000_0000;
}

export type LineSplitter = ReturnType<typeof createLineSplitter>;

/**
 * Splits output into lines in bounded memory and time, whatever is printed. As on a terminal, a carriage return restarts the line, so only
 * the final state of a progress bar is kept. Of an overlong line only the start is emitted; `cutLine` marks it.
 */
export function createLineSplitter(onLine: (line: string) => void) {
  const decoder = new StringDecoder("utf8");
  let line = "";
  let hasReturned = false;

  function add(text: string): void {
    const shown = trimLast(text, "\r");
    const lastReturn = shown.lastIndexOf("\r");
    if (shown !== "" && (hasReturned || lastReturn >= 0)) line = "";
    line += shown.slice(lastReturn + 1).slice(0, readLineBytes - line.length);
    hasReturned = shown !== text || (hasReturned && shown === "");
  }

  function finish(): void {
    const whole = line;
    line = "";
    hasReturned = false;
    onLine(whole);
  }

  function take(text: string): void {
    let from = 0;
    for (let feed = text.indexOf("\n"); feed >= 0; feed = text.indexOf("\n", from)) {
      add(text.slice(from, feed));
      finish();
      from = feed + 1;
    }
    add(text.slice(from));
  }

  return {
    push: (chunk: Buffer) => take(decoder.write(chunk)),
    /** Emits a last line that has no line feed. */
    end() {
      take(decoder.end());
      if (line !== "") finish();
    },
  };
}
