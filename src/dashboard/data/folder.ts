import type { SourceFolder } from "../../contract/source-rules.ts";

/** A folder that a person dropped or chose, with its files. */
export interface LocalFolder extends SourceFolder {
  readonly name: string;
  file(path: string): Promise<File>;
}

/** Returns the first folder among the dropped items, if any. Call it in the event itself: the browser clears the items afterwards. */
export function droppedFolder(items: DataTransferItemList): LocalFolder | undefined {
  const entries = [...items].map((item) => item.webkitGetAsEntry());
  const root = entries.find((entry) => entry?.isDirectory === true) as FileSystemDirectoryEntry | undefined;
  if (root === undefined) return undefined;
  const file = async (path: string) => {
    const entry = await new Promise<FileSystemEntry>((resolve, reject) => root.getFile(path, {}, resolve, reject));
    return new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
  };
  const list = async (inside: string) => {
    const found = await entriesOf(inside === "" ? root : await folderIn(root, inside.slice(0, -1)));
    return found.map(({ name, isDirectory }) => ({ name, isFolder: isDirectory }));
  };
  return { name: root.name, list, file, text: textBy(file) };
}

/** Returns the folder that a user chose in a folder input; undefined if it has no files. */
export function chosenFolder(files: FileList): LocalFolder | undefined {
  const name = files[0]?.webkitRelativePath.split("/", 1)[0];
  if (name === undefined) return undefined;
  const byPath = new Map([...files].map((file) => [file.webkitRelativePath.slice(name.length + 1), file]));
  const list = async (inside: string) => {
    const found = new Map<string, boolean>();
    for (const path of byPath.keys()) {
      if (!path.startsWith(inside)) continue;
      const [first = "", ...rest] = path.slice(inside.length).split("/");
      found.set(first, rest.length > 0);
    }
    return [...found].map(([each, isFolder]) => ({ name: each, isFolder }));
  };
  const file = async (path: string) => {
    const found = byPath.get(path);
    if (found === undefined) throw new Error(`${path} is missing.`);
    return found;
  };
  return { name, list, file, text: textBy(file) };
}

function textBy(file: (path: string) => Promise<File>): (path: string) => Promise<string> {
  return (path) =>
    file(path).then(
      (found) => found.text(),
      () => "",
    );
}

function folderIn(root: FileSystemDirectoryEntry, path: string): Promise<FileSystemDirectoryEntry> {
  return new Promise((resolve, reject) =>
    root.getDirectory(path, {}, (entry) => resolve(entry as FileSystemDirectoryEntry), reject),
  );
}

// A reader returns at most 100 entries at a time, and none at the end.
async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all;
    all.push(...some);
  }
}
