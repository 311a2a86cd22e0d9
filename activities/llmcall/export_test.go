package llmcall

// For the fuzz targets.
var (
	Fill     = fill
	Unfenced = unfenced
)
