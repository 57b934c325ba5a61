package engine

// none is the stage of what belongs to none, or is not told apart by stages.
const none = -1

// stagesOfParts adds up what all parts recorded of the stages. It returns nil where the
// plan has none, or a part did not tell of them: its process vanished, and its messages
// would be missing.
func (j *assembly) stagesOfParts() []StageRecord {
	if len(j.stages) == 0 {
		return nil
	}
	all := make([]StageRecord, len(j.stages))
	for i, begin := range j.stages {
		all[i].From, all[i].To = begin, j.to
		if i > 0 {
			all[i-1].To = begin
		}
	}
	for _, p := range j.parts {
		if p.Missing || len(p.Stages) != len(all) {
			return nil
		}
		for i := range all {
			all[i].Merge(&p.Stages[i])
		}
	}
	return all
}

// stageAt returns which stage an instant lies in.
func (j *assembly) stageAt(due int64) int {
	for i := len(j.staged) - 1; i >= 0; i-- {
		if due >= j.staged[i].From {
			return i
		}
	}
	return none
}

// reached returns the stages that the run came to, the last as far as it came.
func (j *assembly) reached() []StageRecord {
	for i := range j.staged {
		if g := &j.staged[i]; g.From >= j.raw.To {
			return j.staged[:i]
		} else if g.To > j.raw.To {
			g.To = j.raw.To
		}
	}
	return j.staged
}
