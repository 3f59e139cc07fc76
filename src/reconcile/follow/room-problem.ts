import { requireRoomForBuild } from "../../features/disk/disk.ts";
import type { Platform } from "../platform.ts";

/** Returns why nothing can be fetched and built now; null if there is room. */
export async function roomProblem(platform: Platform): Promise<string | null> {
  try {
    const fail = (code: string, more: { error?: string } = {}): never => {
      throw new NoRoom(more.error ?? `The platform's disk is full (${code}).`);
    };
    await requireRoomForBuild({ platform, fail });
    return null;
  } catch (error) {
    if (error instanceof NoRoom) return error.message;
    throw error;
  }
}

class NoRoom extends Error {}
