// Package admit decides, before anything is written, whether a call may be made, for which run it is meant and whether it
// repeats one that was taken before. It is pure: the history that it asks for is handed in. Codes and words of refusals live
// here, so that every host of the machine refuses alike.
package admit
