import type { NetworkMode, SandboxNetwork } from "./spec.ts";

/** A way to give sandboxes a network. `open` and `close` may be called again after a crash. */
export interface NetworkDriver {
  readonly mode: NetworkMode;
  /** Whether a cloud's metadata service is out of reach. */
  readonly closesMetadata: boolean;
  open(id: string, network: SandboxNetwork): Promise<OpenedNetwork>;
  /** Frees what `open` made; a missing one is fine. */
  close(id: string): Promise<void>;
  /** The ids that hold something here. */
  ids(): readonly string[];
  /** Takes back what the driver set up for all of them. */
  dismantle(): Promise<void>;
}

export interface OpenedNetwork {
  /** The words before the sandbox's command that enter the network; empty for the host's own. */
  readonly prefix: readonly string[];
  /** Whether bubblewrap makes an empty network of its own. */
  readonly isolate: boolean;
  /** Whether 127.0.0.1 is another one than the host's, so that services must be forwarded. */
  readonly ownLoopback: boolean;
  /** The port the application listens on, and where the host reaches it. Null unless it serves. */
  readonly serve: { readonly port: number; readonly address: { readonly host: string; readonly port: number } } | null;
}

/** No network at all, whatever the driver. */
export const noNetwork: OpenedNetwork = { prefix: [], isolate: true, ownLoopback: true, serve: null };
