/** Limits what the answers of all sessions may take of the control plane's memory together. */
export interface AnswerMemory {
  /** Counts more bytes of an answer that then has `answerBytes`; returns false when there is no room for an answer of this size. */
  take(bytes: number, answerBytes: number): boolean;
  /** The answer, of which this many bytes were taken, is gone. */
  free(answerBytes: number): void;
}

// An ordinary page has at most 2 MiB and is never refused, so that one project's huge values keep nobody from reading small ones.
const alwaysBytes = 8 * 1024 * 1024;

/** Creates the memory of all sessions: `mostBytes`, beyond which only answers of less than 8 MiB find room. */
export function createAnswerMemory(mostBytes: number): AnswerMemory {
  let taken = 0;
  return {
    take(bytes, answerBytes) {
      taken += bytes;
      return taken <= mostBytes || answerBytes <= alwaysBytes;
    },
    free(answerBytes) {
      taken -= answerBytes;
    },
  };
}
