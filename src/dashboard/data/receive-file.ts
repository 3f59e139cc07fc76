import type { Client } from "../../contract/client.ts";

interface Received {
  readonly slug: string;
  readonly id: string;
  /** Receives the number of bytes so far. */
  readonly onBytes: (bytes: number) => void;
}

/**
 * Receives a file through a tunnel to the database. The parts are blobs, which the browser keeps outside of the page's memory. Throws the
 * platform's reason.
 */
export function receiveFile(client: Client, { slug, id, onBytes }: Received): Promise<Blob> {
  const socket = client.tunnel("database.tunnel", { params: { slug, id } });
  const parts: Blob[] = [];
  let bytes = 0;
  let isWhole = false;
  return new Promise((resolve, reject) => {
    socket.addEventListener("message", ({ data }: MessageEvent<Blob | string>) => {
      if (typeof data === "string") isWhole ||= (JSON.parse(data) as { type?: unknown }).type === "end";
      else {
        parts.push(data);
        onBytes((bytes += data.size));
      }
    });
    socket.addEventListener("close", ({ reason }) =>
      isWhole
        ? resolve(new Blob(parts))
        : reject(new Error(reason === "" ? "The connection to the platform broke." : reason)),
    );
  });
}
