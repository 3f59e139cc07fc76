/** Lets the browser save a file. */
export function saveFile(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The download has begun with the click; the file itself is kept until the browser has it.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
