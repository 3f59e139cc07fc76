import { StringDecoder } from "node:string_decoder";

/** Semantics: a line of a log has at most this many bytes. */
const longestLineBytes = 10_000;
const cutMark = " … [cut]";
/**
 * What is read of a line, more than a log shows: a secret that begins before the cut must be whole when it is hidden. The longest value of
 * a variable is 32 KiB, three times that when it is percent-encoded.
 */
export const readLineBytes = 128 * 1024;
const longestSecretCharacters = 96 * 1024;

// Titles and links, commands that move and colour, and the few of two or three characters. Node's own pattern takes the square of the
// time for a long row of beginnings.
const escapes = /\x1b\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-Z\\^-~]/g;

/** The text without what would colour or paint over the reader's terminal. */
export function withoutControls(text: string): string {
  return text.replace(escapes, "").replace(/[^\P{Cc}\t]/gu, "");
}

/** The line without secrets, to be cut afterwards: a cut before it would leave the first part of a secret that lies across it. */
export function hideSecrets(line: string, redact: (text: string) => string): string {
  const hidden = redact(line);
  // The line may go on behind what was read of it, and so may a secret at its end.
  const isWhole = line.length * 3 < readLineBytes || Buffer.byteLength(line) < readLineBytes - 3;
  return isWhole ? hidden : hidden.slice(0, -longestSecretCharacters) + cutMark;
}

/** The line, or as much of it as a log takes, with a mark at its end. Never half a character. */
export function cutLine(line: string): string {
  // No character has more than three bytes for each of its UTF-16 units.
  if (line.length * 3 <= longestLineBytes || Buffer.byteLength(line) <= longestLineBytes) return line;
  const bytes = Buffer.from(line);
  let room = longestLineBytes - Buffer.byteLength(cutMark);
  while (isWithinCharacter(bytes[room])) room -= 1;
  return bytes.toString("utf8", 0, room) + cutMark;
}

/** Whether this byte of UTF-8 goes on with a character that began before it. */
function isWithinCharacter(byte = 0): boolean {
  return (byte & 0b1100_0000) === 0b1000_0000;
}

export interface LineSplitter {
  push(chunk: Buffer): void;
  /** Gives out a last line that has no line feed. */
  end(): void;
}

/**
 * Splits output into lines, in bounded memory and time whatever is printed. A carriage return starts the line anew, as on a terminal:
 * of a progress bar only its end is kept. Of a line that is far too long only the beginning is given out; `cutLine` marks it.
 */
export function createLineSplitter(onLine: (line: string) => void): LineSplitter {
  const decoder = new StringDecoder("utf8");
  let line = "";
  let hasReturned = false;

  function add(text: string): void {
    const shown = withoutLastReturns(text);
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
    push: (chunk) => take(decoder.write(chunk)),
    end() {
      take(decoder.end());
      if (line !== "") finish();
    },
  };
}

// A regular expression would look at a long row of carriage returns once for each of them.
function withoutLastReturns(text: string): string {
  let end = text.length;
  while (text[end - 1] === "\r") end -= 1;
  return text.slice(0, end);
}
