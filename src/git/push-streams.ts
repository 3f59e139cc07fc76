import { bandPacket, PacketMap } from "./packets.ts";
import type { Push } from "./push.ts";

const flush = "0000";

/**
 * Takes the client's `shallow` lines out of a push's commands. git would refuse every commit at which the client's history ends, even if the
 * project has its parents, and only after the hook. Without these lines git checks, before the hook, that nothing is missing.
 */
export function dropShallow(push: Push): PacketMap {
  return new PacketMap((packet) => {
    if (packet.toString("latin1") === flush) return "last";
    if (!packet.toString("latin1", 4, 12).startsWith("shallow ")) return packet;
    push.isShallow = true;
    return Buffer.alloc(0);
  });
}

const mostTextBytes = 4096;

/** Adds a sentence of Berth's to git's report of a push that git itself refused before its hook. */
export function explainReport(push: Push, packMib: number): PacketMap {
  let text = "";
  return new PacketMap((packet) => {
    if (packet[4] === 2 && text.length < mostTextBytes) text += packet.toString("utf8", 5);
    if (packet[4] !== 1) return packet;
    // The first packet of the report: git's own messages are complete.
    const lines = push.decision === null ? explain(text, push.isShallow, packMib) : [];
    const before = lines.map((line) => bandPacket(2, ` !     ${line}\n`));
    return lines.length === 0 ? packet : Buffer.concat([...before, packet]);
  });
}

function explain(text: string, isShallow: boolean, packMib: number): readonly string[] {
  if (/exceeds maximum allowed size/.test(text))
    return [
      `The push is larger than ${packMib} MiB, the most that this platform accepts (BERTH_PACK_MIB). Nothing was changed.`,
      "Take data and generated files out of the commits. The largest files, with their sizes in bytes, are listed by:",
      "git rev-list --objects HEAD | git cat-file --batch-check='%(objectsize) %(rest)' | sort -n | tail -5",
    ];
  if (!/did not receive expected object|missing|unresolved delta/.test(text)) return [];
  return isShallow
    ? [
        "This clone is shallow: it has not sent the parents of its oldest commit, and the project does not have them. Nothing was changed.",
        "Fetch the whole history, then push again: git fetch --unshallow",
      ]
    : [
        "The push lacks objects that its commits need, as after a graft or in a damaged clone. Nothing was changed.",
        "Look for the gap with `git fsck --full`, and push from a complete clone.",
      ];
}
