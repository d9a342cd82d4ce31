// Times of schedules by robfig/cron: one JSON question per line in, one JSON answer per line out.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"time"

	"github.com/robfig/cron/v3"
)

type question struct {
	Schedule string `json:"schedule"`
	Zone     string `json:"zone"`
	After    int64  `json:"after"`
	Until    int64  `json:"until"`
}

// Null = the schedule is refused.
func times(asked question) []int64 {
	location, err := time.LoadLocation(asked.Zone)
	if err != nil {
		return nil
	}
	schedule, err := cron.ParseStandard(asked.Schedule)
	if err != nil {
		return nil
	}
	found := []int64{}
	for at := schedule.Next(time.Unix(asked.After, 0).In(location)); !at.IsZero() && at.Unix() <= asked.Until; at = schedule.Next(at) {
		found = append(found, at.Unix())
	}
	return found
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		if err := answers.Encode(times(asked)); err != nil {
			panic(err)
		}
	}
}
