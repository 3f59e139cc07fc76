import type { ImageRegistry } from "./image-registry.ts";

/** A registry that the operator runs and whose certificate the machines trust. Berth deletes nothing there. `login` is `user:password`. */
export function createGivenRegistry(name: string, login: string | null): ImageRegistry & { close(): Promise<void> } {
  const [username = "", ...password] = (login ?? "").split(":");
  const account = { username, password: password.join(":"), serveraddress: name.split("/")[0] };
  return {
    name: async () => name,
    authHeader: Buffer.from(JSON.stringify(login === null ? {} : account)).toString("base64url"),
    trustScript: async () => "",
    deleteImage: async () => {},
    close: async () => {},
  };
}
