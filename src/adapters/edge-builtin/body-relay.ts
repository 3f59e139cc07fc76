/** The destination of a body: a request to a replica, a response to a client, or a bare socket. */
export interface BodyReceiver {
  write(bytes: Buffer): boolean;
  once(event: "drain", listener: () => void): unknown;
}

/** The source of a body. */
export interface BodySource {
  pause(): void;
  resume(): void;
}

/** Limits how fast one project's bodies may bring very small chunks, over all of its bodies together. */
export interface ChunkBudget {
  /** Returns whether a body that has just brought this many chunks in one turn of the event loop must wait. */
  isOverShare(chunks: number): boolean;
  /** Records chunks that were read in one turn of the event loop, and calls `resume` when their source may continue. */
  spend(chunks: number, resume: () => void): void;
}

/**
 * Forwards a body as it arrives and pauses its source while the receiver's buffer is full. All chunks of one turn of the event loop become
 * one write; otherwise a sender of one-byte chunks would cost hundreds of bytes of memory per waiting byte.
 */
export class BodyRelay {
  /** The time since which the receiver's buffer has been full; undefined while it accepts data. */
  blockedSinceMs: number | undefined;
  /** No byte has arrived yet. */
  isUnread = true;
  readonly #source: BodySource;
  readonly #budget: ChunkBudget;
  #receiver: BodyReceiver | undefined;
  #chunks: Buffer[] = [];
  #scheduled = false;
  #stopped = false;
  #waits = false;
  #isOverShare = false;
  // The number of current reasons to keep the source paused.
  #holds = 0;

  constructor(source: BodySource, budget: ChunkBudget) {
    this.#source = source;
    this.#budget = budget;
  }

  /** Sets the receiver and writes to it what arrived before. */
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
    // In a microtask, which runs after the stream's own ticks: one of those would let a paused socket read on.
    soon(() => {
      this.#scheduled = false;
      if (this.#receiver !== undefined) this.#flush();
      else this.#awaitReceiver();
    });
  }

  /** Ends the relay once the body is complete; returns the bytes that have not been written yet. */
  finish(): Buffer | undefined {
    this.#stopped = true;
    return this.#merge();
  }

  /** Discards what has not been forwarded and resumes the source, so that the rest of the body is read and dropped. */
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

  /** Pauses the source until a receiver is set. Only once, because a TLS connection still delivers decrypted data after a pause. */
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

/**
 * Runs a function as a microtask. Node's own `queueMicrotask` creates an async-hooks object for each call, which costs several times as
 * much.
 */
export function soon(run: () => void): void {
  void done.then(run);
}
