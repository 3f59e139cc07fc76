export function saveFile(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The click only starts the download: keep the file until the browser has read it.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
