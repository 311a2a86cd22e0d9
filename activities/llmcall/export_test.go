package llmcall

// For the fuzz targets.
var (
	Fill       = fill
	ProgramEnd = programEnd
	Unfenced   = unfenced
)
