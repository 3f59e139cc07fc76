import { Header, type HeaderData } from "tar";

/** One member of an archive, valid or hostile. */
export interface Member extends HeaderData {
  readonly path: string;
  readonly text?: string | Uint8Array;
}

/** Creates a tar archive of these members in this order. */
export function tarOf(...members: Member[]): Buffer {
  const blocks = members.flatMap(({ text = "", ...head }) => {
    const content = Buffer.from(text);
    const header = Buffer.alloc(512);
    new Header({ type: "File", mode: 0o644, mtime: new Date(0), ...head, size: content.length }).encode(header, 0);
    return [header, content, Buffer.alloc((512 - (content.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}
