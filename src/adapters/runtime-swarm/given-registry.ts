import type { ImageRegistry } from "./image-registry.ts";

/** A registry that the operator runs and whose certificate the machines trust. Berth deletes nothing there. `login` is `user:password`. */
export function createGivenRegistry(name: string, login: string | null): ImageRegistry & { close(): Promise<void> } {
  const [username = "", ...password] = (login ?? "").split(":");
  const account = { username, password: password.join(":"), serveraddress: name.split("/")[0] };
  return {
    name: async () => name,
    authHeader: padded(JSON.stringify(login === null ? {} : account)),
    trustScript: async () => "",
    deleteImage: async () => {},
    close: async () => {},
  };
}

/** Docker reads the URL-safe alphabet only with padding (RFC 4648 §5); it silently drops a login without it. */
function padded(text: string): string {
  return Buffer.from(text).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
}
