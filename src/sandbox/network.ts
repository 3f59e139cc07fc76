import type { NetworkMode, SandboxNetwork } from "./spec.ts";

/** Gives sandboxes a network. `open` and `close` may be called again after a crash. */
export interface NetworkDriver {
  readonly mode: NetworkMode;
  /** Whether sandboxes are kept from reaching a cloud's metadata service. */
  readonly closesMetadata: boolean;
  open(id: string, network: SandboxNetwork): Promise<OpenedNetwork>;
  /** Frees what `open` created. Idempotent. */
  close(id: string): Promise<void>;
  /** The sandboxes that hold a lease of this driver. */
  ids(): readonly string[];
  /** Removes what the driver set up for all sandboxes together. */
  dismantle(): Promise<void>;
}

export interface OpenedNetwork {
  /** Command prefix that enters the network; empty for the host's own. */
  readonly prefix: readonly string[];
  /** Whether bubblewrap creates a new, empty network namespace. */
  readonly isolate: boolean;
  /** Whether 127.0.0.1 differs from the host's, so that services must be forwarded. */
  readonly ownLoopback: boolean;
  /** The port the application listens on, and the address at which the host reaches it. Null unless it serves. */
  readonly serve: { readonly port: number; readonly address: { readonly host: string; readonly port: number } } | null;
}

/** No network at all; works with any driver. */
export const noNetwork: OpenedNetwork = { prefix: [], isolate: true, ownLoopback: true, serve: null };
