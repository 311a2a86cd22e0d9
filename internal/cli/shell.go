package cli

// program is the name that commands shown to people begin with.
const program = "workflows-engine"
