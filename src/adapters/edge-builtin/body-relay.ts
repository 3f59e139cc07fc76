/** What takes a body: a request to a replica, a response to a client, or a bare socket. */
export interface BodyReceiver {
  write(bytes: Buffer): boolean;
  once(event: "drain", listener: () => void): unknown;
}

/** Where a body comes from. */
export interface BodySource {
  pause(): void;
  resume(): void;
}

/** Spreads the cost of very small chunks over time, for all bodies of one project together. */
export interface ChunkBudget {
  /** Whether a body must wait that has just brought the last of so many chunks in one turn of the event loop. */
  isOverShare(chunks: number): boolean;
  /** Records chunks that were read in one turn of the event loop, and calls `resume` when their sender may go on. */
  spend(chunks: number, resume: () => void): void;
}

/**
 * Passes a body on as it comes, and stops its source while the receiver is full. All that comes in one turn of the event loop becomes one
 * write: a sender of one-byte chunks would else cost hundreds of bytes of memory for each byte that waits.
 */
export class BodyRelay {
  /** Since when the receiver takes nothing; undefined while it does. */
  blockedSinceMs: number | undefined;
  /** No byte has come yet. */
  isUnread = true;
  readonly #source: BodySource;
  readonly #budget: ChunkBudget;
  #receiver: BodyReceiver | undefined;
  #chunks: Buffer[] = [];
  #scheduled = false;
  #stopped = false;
  #waits = false;
  #isOverShare = false;
  // How many reasons there are to hold the source.
  #holds = 0;

  constructor(source: BodySource, budget: ChunkBudget) {
    this.#source = source;
    this.#budget = budget;
  }

  /** Where the body goes; what came before waits. */
  sendTo(receiver: BodyReceiver): void {
    this.#receiver = receiver;
    if (!this.#waits) return;
    this.#waits = false;
    this.#flush();
    this.#release();
  }

  take(chunk: Buffer): void {
    if (this.#stopped) return;
    this.isUnread = false;
    this.#chunks.push(chunk);
    if (this.#budget.isOverShare(this.#chunks.length)) {
      this.#isOverShare = true;
      this.#source.pause();
    }
    if (this.#scheduled) return;
    this.#scheduled = true;
    // A microtask follows the stream's own ticks, of which one would let a socket go on reading.
    soon(() => {
      this.#scheduled = false;
      if (this.#receiver !== undefined) this.#flush();
      else this.#awaitReceiver();
    });
  }

  /** The body is whole: gives the bytes that the receiver has not got yet. */
  finish(): Buffer | undefined {
    this.#stopped = true;
    return this.#merge();
  }

  /** Passes nothing more on, and lets the source go on. */
  stop(): void {
    this.#stopped = true;
    this.#chunks = [];
    this.#source.resume();
  }

  #flush(): void {
    const chunks = this.#chunks.length;
    if (this.#stopped || chunks === 0) return;
    if (this.#isOverShare) {
      this.#isOverShare = false;
      this.#hold();
      this.#budget.spend(chunks, () => this.#release());
    }
    if (this.#receiver?.write(this.#merge() as Buffer) !== false) return;
    this.#hold();
    this.blockedSinceMs = performance.now();
    this.#receiver.once("drain", () => {
      this.blockedSinceMs = undefined;
      this.#release();
    });
  }

  /** Once: a TLS connection still delivers what it has decrypted after it was paused. */
  #awaitReceiver(): void {
    if (this.#stopped || this.#waits) return;
    this.#waits = true;
    this.#hold();
  }

  #hold(): void {
    this.#holds += 1;
    this.#source.pause();
  }

  #release(): void {
    this.#holds -= 1;
    if (this.#holds === 0 && !this.#stopped) this.#source.resume();
  }

  #merge(): Buffer | undefined {
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks.length > 1 ? Buffer.concat(chunks) : chunks[0];
  }
}

const done = Promise.resolve();

/** A microtask. Node's own `queueMicrotask` makes an object of its asynchronous hooks for each, which costs several times as much. */
export function soon(run: () => void): void {
  void done.then(run);
}
