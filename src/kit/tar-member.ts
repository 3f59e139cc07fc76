/** Builds the header of a regular file as in tar(5), "POSIX ustar Archives". */
export function tarHeader(name: string, size: number, modifiedAt = new Date(0)): Buffer {
  const block = Buffer.alloc(512);
  const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, "0")}\0`;
  block.write(name, 0);
  block.write(
    octal(0o644, 8) + octal(0, 8) + octal(0, 8) + octal(size, 12) + octal(Math.floor(modifiedAt.getTime() / 1000), 12),
    100,
  );
  block.write("        0", 148);
  block.write("ustar\x0000", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 7)} `, 148);
  return block;
}

/** What fills the last block of a member of this size. */
export const tarPadding = (size: number): Buffer => Buffer.alloc((512 - (size % 512)) % 512);
