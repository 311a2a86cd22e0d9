"use strict";

// Starts a program of the package for this platform in the place of this process: same arguments, environment and streams; signals are
// passed on, and its end is this process's end.
const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { isatty } = require("node:tty");
const { optionalDependencies, version } = require("./package.json");

// find returns the file of a program, or ends the process with what to do.
function find(program) {
  const name = `@workflows-engine/${process.platform}-${process.arch}`;
  const file = process.platform === "win32" ? `${program}.exe` : program;
  try {
    return require.resolve(`${name}/bin/${file}`);
  } catch {
    console.error(
      name in optionalDependencies
        ? `${program}: PLATFORM_PACKAGE_MISSING: the package ${name}, which has the program for this machine, is not installed.
  It is an optional dependency of workflows-engine. Install again without --omit=optional (--no-optional) and, if node_modules or the lock
  file comes from another platform, without them; or: npm install ${name}@${version}`
        : `${program}: PLATFORM_UNSUPPORTED: there is no program for ${process.platform} on ${process.arch}.
  There are: ${Object.keys(optionalDependencies).join(", ")}. Elsewhere, build it with Go: https://github.com/workflows-engine/workflows-engine`,
    );
    process.exit(1);
  }
}

module.exports = function launch(program) {
  const file = find(program);
  // A terminal sends these to both processes. Passed on, they would count twice. They are taken before the program starts: it may have
  // answered before this goes on.
  const terminal = [0, 1, 2].some((fd) => isatty(fd));
  let child;
  for (const signal of ["SIGINT", "SIGHUP", "SIGTERM"]) {
    process.on(signal, () => {
      if (signal === "SIGTERM" || !terminal) child.kill(signal);
    });
  }
  child = spawn(file, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
  child.on("error", (error) => {
    console.error(`${program}: PROGRAM_NOT_STARTED: ${file}: ${error.message}\n  Install the package again; the file must be executable.`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.on("exit", () => (process.exitCode = 128 + (constants.signals[signal] ?? 0))); // if the signal does not end it
    process.kill(process.pid, signal);
  });
};
