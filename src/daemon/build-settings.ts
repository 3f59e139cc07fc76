import { totalmem } from "node:os";
import { buildMemoryMibOf } from "./build-memory.ts";
import { flag, wholeNumber } from "./settings.ts";

/** Settings of builds and of the images that they produce. */
export const buildSettings = {
  buildMemoryMib: {
    ...wholeNumber(
      "BERTH_BUILD_MEMORY_MIB",
      buildMemoryMibOf(totalmem(), process.constrainedMemory()),
      [64, 1_048_576],
      "Memory of one build. Default: half of the machine's memory, but at least 2048 and at most 8192. Node.js gets three quarters of it as its heap.",
    ),
    standard: "",
  },
  buildProcesses: wholeNumber("BERTH_BUILD_PROCESSES", 1024, [16, 100_000], "Processes and threads of one build."),
  buildDiskMib: wholeNumber(
    "BERTH_BUILD_DISK_MIB",
    8192,
    [64, 1_048_576],
    "Disk that one build may take while it runs: source, dependencies, temporary files and the project's build caches.",
  ),
  imageMib: wholeNumber("BERTH_IMAGE_MIB", 4096, [1, 1_048_576], "The largest image that a build may produce."),
  imageEntries: wholeNumber(
    "BERTH_IMAGE_ENTRIES",
    500_000,
    [100, 10_000_000],
    "Files and folders of an image, installed dependencies included.",
  ),
  buildSeconds: wholeNumber("BERTH_BUILD_SECONDS", 900, [1, 86_400], "How long a build may take."),
  buildLogMib: wholeNumber("BERTH_BUILD_LOG_MIB", 64, [1, 1024], "The largest log of a build; the rest is cut off."),
  sharesInstalls: flag(
    "BERTH_SHARE_INSTALLS",
    true,
    "Let projects with the same packages share what npm installed. When off, no build can find out which packages other projects use.",
  ),
};
