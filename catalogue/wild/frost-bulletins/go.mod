module frostbulletins

go 1.22
